"""The order of short rows: a radix sort from the lowest digit, each row in one go.

Takes and gives `TENSOR` nodes.  One kernel, whose statements run one after another for each row, in memory of the
thread: words of key and position are made, the values of all digits are counted, the counts are added up, and
then digit by digit each word is stored where the words with its digit have got to; with the last digit only its
position.  A row stays in the near caches, and threads share the rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from lazulite.ir import ops
from lazulite.ir.calls import KernelInfo
from lazulite.ir.dtype import DType, dtypes
from lazulite.ir.launches import launch
from lazulite.ir.uop import UOp
from lazulite.tensor.base import expanded
from lazulite.tensor.nests import COUNT, Nests, at, clamped, filled, loop

_WIDTH = 8
"""The most bits of a digit."""


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
        self.form, self.nests = form, Nests(form.rows)
        types = [dtypes.int32, form.key, *([dtypes.int32] if form.placed else [])]
        size = form.rows * form.size
        self.result, self.keys, *self.positions = [
            UOp(ops.PARAM, dtype, (), (slot, (size,), "")) for slot, dtype in enumerate(types)
        ]

    def effects(self) -> tuple[UOp, ...]:
        form = self.form
        words = [self.nests.scratch(form.word, form.size) for _ in range(2)]
        i = self.nests.turn(form.size)
        words[0] = filled(words[0], i, at(words[0], i).store(self._word(i)))
        starts = self.nests.added_up(self._counts(words[0]), form.passes, 1 << form.width)
        for place in range(form.passes - 1):
            words = [words[1].after(self._moves(words[0], starts, place, words[1])), words[0]]
        word, start, next_start = self._place(words[0], starts, form.passes - 1, self.nests.turn(form.size))
        position = (word & ((1 << form.below) - 1)).cast(dtypes.int32)
        target = self.nests.row * form.size + clamped(start, form.size)
        return next_start, at(self.result, target).store(position)

    def _word(self, i: UOp) -> UOp:
        place = self.nests.row * self.form.size + i
        position = at(self.positions[0], place) if self.positions else i
        return (at(self.keys, place).cast(self.form.word) << self.form.below) | position.cast(self.form.word)

    def _counts(self, words: UOp) -> UOp:
        """How often each digit has each value."""
        form = self.form
        counts, d = self.nests.scratch(COUNT, form.passes << form.width), self.nests.turn(form.passes << form.width)
        counts = filled(counts, d, at(counts, d).store(UOp.const(COUNT, 0)))
        i = self.nests.turn(form.size)
        places = [at(counts, self._digit(at(words, i), place)) for place in range(form.passes)]
        return filled(counts, i, *[place.store(place + 1) for place in places])

    def _digit(self, word: UOp, place: int) -> UOp:
        """Where the value of a digit is counted."""
        width = self.form.width
        shift = self.form.below + place * width
        return ((word >> shift) & ((1 << width) - 1)).cast(dtypes.index) + (place << width)

    def _place(self, words: UOp, starts: UOp, place: int, i: UOp) -> tuple[UOp, UOp, UOp]:
        """A word, where it goes by a digit, and that the next one with this digit goes behind it."""
        word = at(words, i)
        start = at(starts, self._digit(word, place))
        return word, start, start.store(start + 1)

    def _moves(self, words: UOp, starts: UOp, place: int, moved: UOp) -> UOp:
        i = self.nests.turn(self.form.size)
        word, start, next_start = self._place(words, starts, place, i)
        return loop(i, next_start, at(moved, clamped(start, self.form.size)).store(word))
