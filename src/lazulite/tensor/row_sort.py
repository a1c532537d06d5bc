"""The order of short rows: a radix sort from the lowest digit, each row in one go.

Takes and gives `TENSOR` nodes.  One kernel, whose statements run one after another for each row, in memory of the
thread: words of key and position are made, the values of all digits are counted, the counts are added up, and
then digit by digit each word is stored where the words with its digit have got to; with the last digit only its
position.  A row stays in the near caches, and threads share the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import count

from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.launches import launch
from lazulite.ir.uop import UOp, index
from lazulite.tensor.base import expanded

_WIDTH = 8
"""The most bits of a digit."""
_CHUNK = 16
"""How many counts are added up together: those of a vector."""
_ALIGNMENT = 64
_COUNT = dtypes.uint32


@dataclass(frozen=True, slots=True)
class _Form:
    """Rows of keys, of which some bits are looked at, and the words that they are sorted in."""

    rows: int
    size: int
    key: DType
    placed: bool
    """Whether the positions are given: else they are 0, 1, 2, .."""

    @property
    def word(self) -> DType:
        fits = self.key.bits + (self.size - 1).bit_length() <= 32
        return dtypes.uint32 if fits else dtypes.uint64

    @property
    def below(self) -> int:
        """The bits of a word below its key."""
        return self.word.bits - self.key.bits

    @property
    def passes(self) -> int:
        return -(-self.key.bits // _WIDTH)

    @property
    def width(self) -> int:
        """The bits of a digit."""
        return -(-self.key.bits // self.passes)


def order_of_rows(keys: UOp, positions: UOp | None = None) -> UOp:
    """The int32 positions in the order of unsigned keys of up to 32 bits, two in a row at least: the positions that are
    given, or those of the keys."""
    rows, size = keys.shape
    kernel = _kernel(_Form(rows, size, keys.dtype, positions is not None))
    empty = expanded(UOp.const(dtypes.int32, 0), keys.shape)
    return launch(kernel, empty, keys, *(() if positions is None else (positions,)), fresh=(0,))[0]


@cache
def _kernel(form: _Form) -> UOp:
    """The statements for one row, and the loop over the rows around them."""
    return UOp.sink(*_Row(form).effects(), arg=KernelInfo("sort_row"))


class _Row:
    """Writes the statements."""

    def __init__(self, form: _Form) -> None:
        self.form, self.numbers = form, count()
        self.row = UOp.range(form.rows, next(self.numbers)) if form.rows > 1 else index(0)
        types = [dtypes.int32, form.key, *([dtypes.int32] if form.placed else [])]
        size = form.rows * form.size
        self.result, self.keys, *self.positions = [
            UOp(ops.PARAM, dtype, (), (slot, (size,), "")) for slot, dtype in enumerate(types)
        ]

    def effects(self) -> tuple[UOp, ...]:
        form = self.form
        words = [self._scratch(number, form.word, form.size) for number in range(2)]
        starts = self._starts(words)
        for place in range(form.passes - 1):
            moved = self._moves(words[0], starts, place, words[1])
            words = [UOp(ops.AFTER, form.word, (words[1], moved)), words[0]]
        i = self._turn(form.size)
        word, start, next_start = self._place(words[0], starts, form.passes - 1, i)
        position = (word & ((1 << form.below) - 1)).cast(dtypes.int32)
        target = self.row * form.size + _clamped(start, form.size)
        return next_start, _at(self.result, target).store(position)

    def _scratch(self, number: int, dtype: DType, size: int) -> UOp:
        memory = UOp(ops.SCRATCH, dtype, (), (number, size, _ALIGNMENT))
        return memory if self.row.op is ops.CONST else memory.after(self.row)

    def _turn(self, turns: int) -> UOp:
        return UOp.range(turns, next(self.numbers))

    def _starts(self, words: list[UOp]) -> UOp:
        """Where the words with each digit begin, pass by pass; fills the first words."""
        form = self.form
        i = self._turn(form.size)
        words[0] = _filled(words[0], i, _at(words[0], i).store(self._word(i)))
        counts = self._counts(words[0])
        chunks = (1 << form.width) // _CHUNK
        turn, chunk, j = self._turn(form.passes), self._turn(chunks), self._turn(_CHUNK)
        line = (turn * chunks + chunk) * _CHUNK
        total = UOp(ops.REDUCE, _COUNT, (_at(counts, line + j), j), (ops.ADD, ()))
        sums = self._scratch(3, _COUNT, form.passes * chunks)
        sums = _filled(sums, turn, _loop(chunk, _at(sums, turn * chunks + chunk).store(total)))
        return self._added_up(counts, sums, chunks)

    def _word(self, i: UOp) -> UOp:
        place = self.row * self.form.size + i
        position = _at(self.positions[0], place) if self.positions else i
        return (_at(self.keys, place).cast(self.form.word) << self.form.below) | position.cast(self.form.word)

    def _counts(self, words: UOp) -> UOp:
        """How often each digit has each value."""
        form = self.form
        counts = self._scratch(2, _COUNT, form.passes << form.width)
        d = self._turn(form.passes << form.width)
        counts = _filled(counts, d, _at(counts, d).store(UOp.const(_COUNT, 0)))
        i = self._turn(form.size)
        places = [_at(counts, self._digit(_at(words, i), place)) for place in range(form.passes)]
        return _filled(counts, i, *[place.store(place + 1) for place in places])

    def _added_up(self, counts: UOp, sums: UOp, chunks: int) -> UOp:
        """For each count all before it: whole chunks, and those of its own."""
        turn, chunk, j = self._turn(self.form.passes), self._turn(chunks), self._turn(_CHUNK)
        other, k = self._turn(chunks), self._turn(_CHUNK)
        zero = UOp.const(_COUNT, 0)
        line = (turn * chunks + chunk) * _CHUNK
        before = UOp(ops.REDUCE, _COUNT, ((other < chunk).where(_at(sums, turn * chunks + other), zero), other),
                     (ops.ADD, ()))  # fmt: skip
        within = UOp(ops.REDUCE, _COUNT, ((k < j).where(_at(counts, line + k), zero), k), (ops.ADD, ()))
        starts = self._scratch(4, _COUNT, self.form.passes << self.form.width)
        return _filled(starts, turn, _loop(chunk, _loop(j, _at(starts, line + j).store(before + within))))

    def _digit(self, word: UOp, place: int) -> UOp:
        """Where the value of a digit is counted."""
        width = self.form.width
        shift = self.form.below + place * width
        return ((word >> shift) & ((1 << width) - 1)).cast(dtypes.index) + (place << width)

    def _place(self, words: UOp, starts: UOp, place: int, i: UOp) -> tuple[UOp, UOp, UOp]:
        """A word, where it goes by a digit, and that the next one with this digit goes behind it."""
        word = _at(words, i)
        start = _at(starts, self._digit(word, place))
        return word, start, start.store(start + 1)

    def _moves(self, words: UOp, starts: UOp, place: int, moved: UOp) -> UOp:
        i = self._turn(self.form.size)
        word, start, next_start = self._place(words, starts, place, i)
        return _loop(i, next_start, _at(moved, _clamped(start, self.form.size)).store(word))


def _clamped(start: UOp, size: int) -> UOp:
    """A place that shows its bounds."""
    return UOp.apply(ops.MIN, start, UOp.const(_COUNT, size - 1)).cast(dtypes.index)


def _at(memory: UOp, place: UOp) -> UOp:
    """An element, or where to store one."""
    return UOp(ops.LOAD, memory.dtype, (memory, place))


def _loop(r: UOp, *effects: UOp) -> UOp:
    return UOp(ops.FOR, dtypes.void, (r, *effects), 0)


def _filled(memory: UOp, r: UOp, *effects: UOp) -> UOp:
    return UOp(ops.AFTER, memory.dtype, (memory, _loop(r, *effects)))
