"""The text form of every language; `ir/parse.py` reads it back.

Expressions are infix, statements stand one a line; `docs/reference/languages.md` defines the form.
`to_text` prints the canonical form of a graph: a node used more than once gets a name, loops are
indented blocks, and a state keeps one name inside and after its loop.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lazulite.ir import ops
from lazulite.ir.blocks import Block, effects_of, has_open_loops, loops_of, nest, nest_linear, yields_of
from lazulite.ir.calls import KernelInfo
from lazulite.ir.canonical import canonical
from lazulite.ir.dtype import dtypes
from lazulite.ir.size import sizes_exist, variables_in
from lazulite.ir.spelling import ATOM, Expression, declaration, express, typed_constant
from lazulite.ir.uop import UOp, toposort

LANGUAGES = ("TENSOR", "KERNEL", "LOOP", "LINEAR")
_WIDEST_EXPRESSION = 72
_WIDEST_REPEAT = 20
_DECLARED = frozenset({ops.PARAM, ops.SCALAR, ops.SCRATCH})
_NEVER_NAMED = _DECLARED | {ops.CONST, ops.IOTA, ops.RANGE, ops.CARRY, ops.FINAL}


def to_text(root: UOp, language: str | None = None) -> str:
    """The program as text; the language is found out where it is not given.

    >>> print(to_text(UOp(ops.IOTA, dtypes.int32, (), 8) * 2))
    tensor
    return iota(8):int32 * 2
    """
    return "\n".join(line for line, _ in lines_of(canonical(root), language))


def lines_of(root: UOp, language: str | None = None) -> list[tuple[str, UOp | None]]:
    """The lines of a graph in canonical form, each with the node that it stands for."""
    return _Printer(root, language or language_of(root)).lines()


def language_of(root: UOp) -> str:
    """The language of a graph, as far as its ops show it."""
    if root.op is ops.LINEAR:
        return "LINEAR"
    found = {node.op for node in toposort(root)}
    if ops.FOR in found and not (root.op is ops.SINK and has_open_loops(root)):
        return "LOOP"
    return "KERNEL" if found & {ops.RANGE, ops.LOAD, ops.SCRATCH} else "TENSOR"


class _Printer:
    """Writes the lines of one program, sources before users."""

    def __init__(self, root: UOp, language: str) -> None:
        self.root, self.language = root, language
        self.nodes = toposort(root)
        self.loops = loops_of(self.nodes, reduces=False)
        self.uses = Counter(source for node in self.nodes if node.op is not ops.LINEAR for source in node.src)
        self.listed = frozenset(root.src) if root.op is ops.LINEAR else None
        self.done: list[tuple[str, UOp | None]] = []
        self.texts: dict[UOp, Expression] = {}
        self.states: dict[tuple[UOp, int], str] = {}
        self.carries = {(node.src[0], node.arg): node for node in self.nodes if node.op is ops.CARRY}
        self.awaited = frozenset(e for node in self.nodes if node.op is ops.AFTER for e in node.src[1:])
        self.labels: dict[UOp, str] = {}
        self.temporaries = 0
        self.depth = 0

    def lines(self) -> list[tuple[str, UOp | None]]:
        name = f" {self.root.arg.name}" if isinstance(self.root.arg, KernelInfo) else ""
        self._line(self.language.lower() + name, None)
        self._declarations()
        if self.listed is None:
            outermost = nest([self.root], self.loops)
        else:
            outermost = nest_linear(self.root)
            self._unlisted()
        self._label_effects(outermost)
        self._blocks(outermost)
        if self.listed is None:
            self._results(outermost)
        return self.done

    def _line(self, text: str, node: UOp | None) -> None:
        self.done.append(("    " * self.depth + text, node))

    # --- what stands before the first statement -------------------------------------------------

    def _declarations(self) -> None:
        variables = (
            dict.fromkeys(leaf for node in self.nodes for leaf in variables_in(node.arg)) if sizes_exist() else {}
        )
        declared = dict.fromkeys(node for node in self.nodes if node.op in _DECLARED) | variables
        for node in sorted(declared, key=lambda n: (n not in variables, n.op is ops.SCRATCH, n.arg[0])):
            name, text = declaration(node, self.language)
            self.texts[node] = Expression(name, ATOM)
            self._line(text, node)
        for node in sorted((n for n in self.nodes if n.op is ops.RANGE), key=lambda n: n.arg[0]):
            self.texts[node] = Expression(f"r{node.arg[0][0]}", ATOM)
            if self._is_header(node):
                self._range(node)

    def _is_header(self, node: UOp) -> bool:
        """A range that no loop runs over, of known size: declared in front, in nesting order."""
        looped = node in self.loops or (self.listed is not None and node in self.listed)
        return not looped and node.src[0].op is ops.CONST

    def _range(self, node: UOp) -> None:
        if node.src[0] not in self.texts:
            self._expression(node.src[0])
        extent = self._operand(node.src[0])
        self._line(f"{node.arg[1]} {self.texts[node].text} in 0..{extent}", node)

    def _unlisted(self) -> None:
        """Operands that a LINEAR list leaves out: constants, static indices, memory."""
        assert self.listed is not None
        placed = self.listed | self.texts.keys()
        for node in self.nodes:
            if node not in placed and node.op not in (ops.LINEAR, ops.CARRY, ops.FINAL, ops.AFTER):
                self._expression(node)

    # --- blocks ---------------------------------------------------------------------------------

    def _blocks(self, outermost: Block) -> None:
        opened = [outermost]
        pending = [iter(outermost.items)]
        while pending:
            for item in pending[-1]:
                if isinstance(item, Block):
                    self._open(item)
                    opened.append(item)
                    pending.append(iter(item.items))
                    break
                self._item(item)
            else:
                pending.pop()
                self._close(opened.pop())

    def _open(self, block: Block) -> None:
        r, loop = block.range, block.closer
        assert r is not None and loop is not None
        self._range(r)
        self.depth += 1
        for index in range(loop.arg):
            self.states[r, index] = name = f"c{len(self.states)}"
            carry = self.carries.get((r, index))
            if carry is None:
                self._line(f"state {name}", loop)
            else:
                self.texts[carry] = Expression(name, ATOM)
                self._line(f"state {name} = {self._typed(carry.src[1])}", carry)

    def _close(self, block: Block) -> None:
        r, loop = block.range, block.closer
        if r is None or loop is None:
            return
        for index, value in enumerate(yields_of(loop)):
            text = self._operand(value) if (r, index) in self.carries else self._typed(value)
            self._line(f"next {self.states[r, index]} = {text}", loop)
        if effects_of(loop) != self._direct_effects(block):
            self._line(f"effects {', '.join(self._reference(e) for e in effects_of(loop))}".rstrip(), loop)
        self.depth -= 1

    def _item(self, node: UOp) -> None:
        op = node.op
        if op is ops.RANGE:
            if node not in self.loops and not self._is_header(node):
                self._range(node)
        elif _is_statement(node):
            target, value = self._target(node), self._operand(node.src[2])
            label = f" as {self.labels[node]}" if node in self.labels else ""
            self._line(f"{target} = {value}{label}", node)
        elif op not in (ops.SINK, ops.CARRY) and op not in _DECLARED:
            self._expression(node)

    def _target(self, store: UOp) -> str:
        gate = f" if {self._operand(store.src[3])}" if len(store.src) > 3 else ""
        hint = f" {store.arg}" if store.arg else ""
        return f"{self._operand(store.src[0])}[{self._operand(store.src[1])}{gate}{hint}]"

    # --- expressions ----------------------------------------------------------------------------

    def _expression(self, node: UOp) -> None:
        """Know the node's text, and give it a line and a name where it needs one."""
        self.texts[node] = text = self._inline(node)
        if self._needs_name(node, text.text):
            name = f"t{self.temporaries}"
            self.temporaries += 1
            self._line(f"{name} = {self._typed(node)}", node)
            self.texts[node] = Expression(name, ATOM)

    def _needs_name(self, node: UOp, text: str) -> bool:
        if self.listed is not None:
            return node in self.listed
        if node.op in _NEVER_NAMED:
            return False
        repeats = self.uses[node] > 1 and not (node.dtype is dtypes.index and len(text) <= _WIDEST_REPEAT)
        return repeats or (len(text) > _WIDEST_EXPRESSION and self.uses[node] > 0)

    def _known(self, node: UOp) -> Expression:
        if node not in self.texts:  # an effect, or an operand that a LINEAR list leaves out
            if _is_statement(node) or node.op is ops.FOR:
                return Expression(self._reference(node), ATOM)
            self.texts[node] = self._inline(node)
        return self.texts[node]

    def _inline(self, node: UOp) -> Expression:
        if node.op is ops.FINAL:
            return Expression(self.states[node.src[0].src[0], node.arg], ATOM)
        return express(node, [self._known(source) for source in node.src])

    def _operand(self, node: UOp) -> str:
        return self._known(node).text

    def _typed(self, node: UOp) -> str:
        return typed_constant(node) if node.op is ops.CONST else self._operand(node)

    # --- effects --------------------------------------------------------------------------------

    def _label_effects(self, outermost: Block) -> None:
        """Name the stores that are referred to."""
        named = set(self.awaited)
        pending = [outermost]
        while pending:
            block = pending.pop()
            pending += [item for item in block.items if isinstance(item, Block)]
            wanted = self._wanted(block)
            if wanted != self._direct_effects(block):
                named.update(wanted)
        stores = [node for node in self.nodes if node in named and _is_statement(node)]
        self.labels = {store: f"w{number}" for number, store in enumerate(stores)}

    def _wanted(self, block: Block) -> tuple[UOp, ...]:
        if block.closer is not None:
            return effects_of(block.closer)
        if self.listed is not None:
            return self._direct_effects(block)
        return self.root.src if self.root.op is ops.SINK else (self.root,)

    def _direct_effects(self, block: Block) -> tuple[UOp, ...]:
        """The effects that a block has where no line lists them: what no `after` waits for."""
        items: Sequence[UOp | None] = [i.closer if isinstance(i, Block) else i for i in block.items]
        return tuple([i for i in items if i is not None and is_effect(i) and i not in self.awaited])

    def _reference(self, node: UOp) -> str:
        if node.op is ops.FOR:
            return self.texts[node.src[0]].text
        return self.labels[node] if node in self.labels else self._typed(node)

    def _results(self, outermost: Block) -> None:
        wanted = self._wanted(outermost)
        if self.root.op is ops.SINK and wanted and wanted == self._direct_effects(outermost):
            return
        comma = "," if self.root.op is ops.SINK and len(wanted) == 1 else ""
        self._line(f"return {', '.join(self._reference(node) for node in wanted)}{comma}".rstrip(), self.root)


def is_effect(node: UOp) -> bool:
    """A store, or a loop that lists effects."""
    return _is_statement(node) or (node.op is ops.FOR and len(node.src) > 1 + node.arg)


def _is_statement(node: UOp) -> bool:
    """A STORE with an index; the two-operand form of `TENSOR` is an expression."""
    return node.op is ops.STORE and len(node.src) > 2
