"""The text of one LLVM function while it is written: fresh names, blocks, intrinsics, splats."""

from __future__ import annotations

from collections.abc import Sequence

from lazulite.emit.llvm_types import lane_numbers, signature

Typed = tuple[str, str]
"""A type and a value of it, as text."""


class Text:
    """Lines of a function body, one block after another.

    A splat of a value is made once in each block, where it is used, so that the code generator can fold the
    load of a scalar into the instruction that wants it in every lane.
    """

    def __init__(self, declarations: dict[str, str] | None = None) -> None:
        self.lines: list[str] = []
        self._append = self.lines.append
        self.declarations: dict[str, str] = {} if declarations is None else declarations
        self.block = "entry"
        self.count = 0
        self._made: dict[str | tuple[str, str, int], str] = {}

    def fresh(self, prefix: str = "v") -> str:
        """A name that is not in use."""
        self.count += 1
        return f"%{prefix}{self.count}"

    def fresh_names(self, prefix: str, count: int) -> list[str]:
        """So many of them."""
        first = self.count + 1
        self.count += count
        return [f"%{prefix}{number}" for number in range(first, first + count)]

    def line(self, text: str) -> int:
        """Write a line; gives its number, for `fill`."""
        self._append(f"  {text}")
        return len(self.lines) - 1

    def fill(self, number: int, text: str) -> None:
        """Replace a line that was written before its text was known."""
        self.lines[number] = f"  {text}"

    def define(self, text: str) -> str:
        """A new name for the result of an instruction."""
        number = self.count = self.count + 1
        name = f"%v{number}"
        self._append(f"  {name} = {text}")
        return name

    def once(self, text: str) -> str:
        """The result of an instruction, computed once in this block."""
        made = self._made.get(text)
        if made is None:
            made = self._made[text] = self.define(text)
        return made

    def open(self, label: str) -> None:
        """Begin a block."""
        self._append(f"{label}:")
        self.block = label
        self._made = {}

    def jump(self, label: str) -> None:
        self._append(f"  br label %{label}")

    def branch(self, gate: str, yes: str, no: str) -> None:
        self._append(f"  br i1 {gate}, label %{yes}, label %{no}")

    def label(self, prefix: str) -> str:
        """A fresh name of a block."""
        self.count += 1
        return f"{prefix}{self.count}"

    def splat(self, element: str, value: str, lanes: int) -> str:
        """The scalar in every lane."""
        if value[0] != "%":
            return f"splat ({element} {value})"
        key = element, value, lanes
        made = self._made.get(key)
        if made is None:
            kind = f"<{lanes} x {element}>"
            first = self.define(f"insertelement {kind} poison, {element} {value}, i64 0")
            zeros = f"<{lanes} x i32> zeroinitializer"
            made = self._made[key] = self.define(f"shufflevector {kind} {first}, {kind} poison, {zeros}")
        return made

    def shuffle(self, kind: str, value: str, chosen: Sequence[int], more: str = "poison") -> str:
        """The chosen lanes of a vector, or of two with the lanes of the second counted on."""
        return self.define(f"shufflevector {kind} {value}, {kind} {more}, {lane_numbers(tuple(chosen))}")

    def interleaving(self, kind: str, value: str, chosen: Sequence[int], more: str) -> str:
        """A shuffle that is one step of a transposition, to be done as it stands.

        The code generator else spends most of its time on the search for fewer shuffles that do the work of several
        steps, and finds none.  It does not look through the fence, which is no instruction, but there are only
        fences for numbers of these types.
        """
        result = self.shuffle(kind, value, chosen, more)
        if kind.endswith((" float>", " double>")):
            return self.define(self.call("@llvm.arithmetic.fence", kind, [(kind, result)], [kind]))
        return result

    def resized(self, element: str, value: str, lanes: int, wanted: int) -> str:
        """A value of `lanes` (0: a scalar) as one of another length: cut, or with anything in further lanes."""
        if lanes == wanted:
            return value
        kind = f"<{lanes} x {element}>"
        if not lanes:
            return self.define(f"insertelement <{wanted} x {element}> poison, {element} {value}, i64 0")
        if not wanted:
            return self.define(f"extractelement {kind} {value}, i64 0")
        return self.shuffle(kind, value, [min(lane, lanes - 1) for lane in range(wanted)])

    def call(self, intrinsic: str, result: str, operands: Sequence[Typed], overloads: Sequence[str]) -> str:
        """The text of a call of an intrinsic that is overloaded in these types."""
        name, declaration = signature(intrinsic, result, tuple([kind for kind, _ in operands]), tuple(overloads))
        self.declarations[name] = declaration
        return f"call {result} {name}({', '.join([f'{kind} {value}' for kind, value in operands])})"
