"""Schedule steps: what to do with the ranges of a kernel, as data that prints, parses and is cached.

A range is named by its nesting order in the canonical kernel (`0`, `1`, ...); splitting or
partitioning the range `n` makes `n.0` and `n.1`.  `parse(text(steps)) == steps`.  Applying steps is
`kernel/apply.py`; choosing them `kernel/heuristic.py`.

    split 0 14         range 0 becomes 0.0 (outer) and 0.1 of extent 14; a remainder is gated
    partition 0 504    the first 504 turns become 0.0, the others 0.1 (the statement is written twice)
    reorder 2 0.0 1    these ranges take the places they hold together in this order
    parallel 0.0       turns may run on different threads
    vectorize 1.1      turns become the lanes of a vector
    tile 0.1           turns become the rows of a register tile
    group 2.0          a reduction keeps a partial result for each turn of this range, then combines them
    stage 1 1.0 2 1.1  what loads of memory slot 1 read over these ranges is first copied to scratch memory that has
                       them as its axes, outermost first; the copy is redone when a range further out turns
    stage 1 1.0+2 0    ranges 1.0 and 2 move along the same axis of the operand, as the places of a window and its
                       elements do: they share an axis of the copy, which holds each element once
    keep 3 1           what is reduced over range 3 is computed into scratch memory, once, also for the same
                       expression over range 1 (which is cut in the same way)
    epilogue 2.1       the tile of a sum waits in scratch memory, and what is made of it is computed in loops over the
                       tile with vectors along this range: one that has been its rows, where memory is then walked in
                       order, or still its lanes, so that one vector of what is made is written out
    epilogue 1.1.1 3   the same, but for the rows over range 3, which are rows there too
    matrixunit 0.1 by 1.1 over 2.1 2.2
                       a matrix unit computes the sum over the last ranges: the first are rows and the others columns
                       of its result; the innermost range of each is inside of one instruction, further ones count
                       results that are worked on together; `as uint8 int8` makes copies of the left factor and
                       of the right one these types
    prefetch 1 3 0     loads of memory slot 1 over range 3 ask for what they will read at the next turn of range 0
    stream 0           what is stored to memory slot 0 goes past the caches, as it is not read soon
    block 1 32         32 turns of range 1 at a time: each statement of a kernel with intermediates runs through all
                       of them (its range 1.1) before the next one begins; scratch memory holds the whole block
    strip 7 512        the statements run over 512 turns at a time of the axis that range 7 of the first one walks:
                       intermediates hold a strip of it, and reductions keep running results from strip to strip
    in 0: split 2 8    a step of the first statement
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lazulite.base.errors import FormatError

Name = tuple[int, ...]
"""A range: its order in the canonical kernel, then which part of each split."""


@dataclass(frozen=True, slots=True)
class Split:
    """Turn t of the range is turn (t // factor, t % factor) of an outer and an inner range."""

    range: Name
    factor: int


@dataclass(frozen=True, slots=True)
class Partition:
    """The turns below `at` and the others become two ranges; what varies with the range is doubled."""

    range: Name
    at: int


@dataclass(frozen=True, slots=True)
class Reorder:
    """The named ranges take the places they hold together, in this order."""

    ranges: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Parallel:
    """The turns of the range, which must be the outermost, may run on different threads."""

    range: Name


@dataclass(frozen=True, slots=True)
class Vectorize:
    """The turns of the range are lanes of a vector."""

    range: Name


@dataclass(frozen=True, slots=True)
class Tile:
    """The turns of the range are rows of a register tile: instructions instead of a loop."""

    range: Name


@dataclass(frozen=True, slots=True)
class Group:
    """A reduction first combines all its other ranges, then over this one: long sums stay exact."""

    range: Name


Axis = Name | tuple[Name, ...]
"""One range, or several that share an axis of a copy."""


def names(axis: Axis) -> tuple[Name, ...]:
    """The ranges of an axis.

    >>> names((0, 1)), names(((0, 1), (2,)))
    (((0, 1),), ((0, 1), (2,)))
    """
    return tuple([part for part in axis if isinstance(part, tuple)]) or (axis,)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True)
class Stage:
    """Copy what loads of a memory slot read over these ranges into scratch memory that has them as axes."""

    slot: int
    axes: tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Keep:
    """Compute what is reduced over a range into scratch memory, also for the same expression over another."""

    range: Name
    again: Name


@dataclass(frozen=True, slots=True)
class Epilogue:
    """What is made of a sum is computed in loops over its tile, whose lanes are its rows or lanes over `range`."""

    range: Name
    rows: tuple[Name, ...] = ()
    """Rows of the tile that stay rows."""


@dataclass(frozen=True, slots=True)
class MatrixUnit:
    """A matrix unit computes a sum of products: which ranges are the rows, the columns and the depth of its tiles.

    All of `depth` and the last of `rows` and `columns` lie inside of one instruction; the others are several tiles
    that are kept in registers together.  Where the columns are lanes and the rows those of a register tile, vectors
    take the place of tiles.
    """

    rows: tuple[Name, ...]
    columns: tuple[Name, ...]
    depth: tuple[Name, ...]
    factors: tuple[str, ...] = ()
    """The types in which the left and the right factor are copied; as they are in memory where it is empty."""


@dataclass(frozen=True, slots=True)
class Prefetch:
    """Loads of a memory slot over a range ask for what they will read at the next turn of the range `ahead`."""

    slot: int
    range: Name
    ahead: Name


@dataclass(frozen=True, slots=True)
class Stream:
    """Stores to a memory slot go past the caches, to leave them to what is read again."""

    slot: int


@dataclass(frozen=True, slots=True)
class Block:
    """The statements run one after another for so many turns of a range that they share, instead of for each."""

    range: Name
    factor: int


@dataclass(frozen=True, slots=True)
class Strip:
    """The statements run over strips of an axis: so many turns of a range of the first one and of those that walk
    intermediates as it does."""

    range: Name
    factor: int


@dataclass(frozen=True, slots=True)
class Within:
    """A step of one statement; statements are numbered in the order in which they run."""

    statement: int
    step: Step


Step = (
    Split | Partition | Reorder | Parallel | Vectorize | Tile | Group | Stage | Keep | Epilogue | MatrixUnit | Prefetch
    | Stream | Block | Strip | Within
)  # fmt: skip
_NUMBERED: dict[str, Callable[[Name, int], Step]] = {
    "split": Split, "partition": Partition, "block": Block, "strip": Strip,
}  # fmt: skip
_SINGLE = {kind.__name__.lower(): kind for kind in (Parallel, Vectorize, Tile, Group)}


def name_text(name: Name) -> str:
    """The spelling of a range's name.

    >>> name_text((0, 1))
    '0.1'
    """
    return ".".join(map(str, name))


def within(steps: Iterable[Step], statement: int) -> tuple[Step, ...]:
    """The steps of one statement; all of them for the number -1, a kernel that is only one."""
    if statement < 0:
        return tuple(steps)
    return tuple(s.step for s in steps if isinstance(s, Within) and s.statement == statement)


def text(steps: tuple[Step, ...]) -> str:
    """The steps, one a line."""
    return "\n".join(_line(step) for step in steps)


def _line(step: Step) -> str:
    if isinstance(step, Within):
        return f"in {step.statement}: {_line(step.step)}"
    word = type(step).__name__.lower()
    if isinstance(step, Reorder):
        return " ".join([word, *map(name_text, step.ranges)])
    if isinstance(step, Epilogue):
        return " ".join([word, *map(name_text, (step.range, *step.rows))])
    if isinstance(step, MatrixUnit):
        rows, columns, depth = (" ".join(map(name_text, names)) for names in (step.rows, step.columns, step.depth))
        return f"{word} {rows} by {columns} over {depth}" + " ".join(["", "as", *step.factors] if step.factors else [])
    if isinstance(step, Keep):
        return " ".join([word, name_text(step.range), name_text(step.again)])
    if isinstance(step, Stage):
        return " ".join([word, str(step.slot), *["+".join(map(name_text, names(axis))) for axis in step.axes]])
    if isinstance(step, Prefetch):
        return " ".join([word, str(step.slot), name_text(step.range), name_text(step.ahead)])
    if isinstance(step, Stream):
        return f"{word} {step.slot}"
    number = [str(step.at)] if isinstance(step, Partition) else []
    if isinstance(step, Split | Block | Strip):
        number = [str(step.factor)]
    return " ".join([word, name_text(step.range), *number])


def parse(source: str) -> tuple[Step, ...]:
    """Read what `text` writes.

    >>> parse("split 0 4" + chr(10) + "vectorize 0.1")
    (Split(range=(0,), factor=4), Vectorize(range=(0, 1)))
    """
    return tuple(_parse_line(line) for line in source.splitlines() if line.strip())


def _parse_line(line: str) -> Step:
    word, *rest = line.split()
    try:
        if word == "in":
            number, _, inner = line.partition(":")
            return Within(int(number.split()[1]), _parse_line(inner))
        if word == "reorder" and rest:
            return Reorder(tuple(map(_name, rest)))
        if word == "epilogue" and rest:
            return Epilogue(_name(rest[0]), tuple(map(_name, rest[1:])))
        if word == "stage" and len(rest) > 1:
            return Stage(int(rest[0]), tuple(map(_axis, rest[1:])))
        if word == "matrixunit":
            return _parse_matrix_unit(rest)
        if word == "keep" and len(rest) == 2:
            return Keep(_name(rest[0]), _name(rest[1]))
        if word == "prefetch" and len(rest) == 3:
            return Prefetch(int(rest[0]), _name(rest[1]), _name(rest[2]))
        if word == "stream" and len(rest) == 1:
            return Stream(int(rest[0]))
        if word in _SINGLE and len(rest) == 1:
            return _SINGLE[word](_name(rest[0]))
        if word in _NUMBERED and len(rest) == 2:
            return _NUMBERED[word](_name(rest[0]), int(rest[1]))
    except (ValueError, IndexError):
        pass
    raise FormatError("steps.parse", f"not a schedule step: {line.strip()!r}",
                      hint="one step a line, such as 'split 0 16' or 'vectorize 0.1'")  # fmt: skip


def _parse_matrix_unit(words: list[str]) -> MatrixUnit:
    factors: tuple[str, ...] = ()
    if words[-3:-2] == ["as"]:
        *words, _, left, right = words
        factors = left, right
    by, over = words.index("by"), words.index("over")
    parts = words[:by], words[by + 1 : over], words[over + 1 :]
    rows, columns, depth = (tuple(map(_name, part)) for part in parts)
    if not (rows and columns and depth):
        raise ValueError("a part without ranges")
    return MatrixUnit(rows, columns, depth, factors)


def _axis(word: str) -> Axis:
    joint = tuple(map(_name, word.split("+")))
    return joint if len(joint) > 1 else joint[0]


def _name(word: str) -> Name:
    return tuple(int(part) for part in word.split("."))
