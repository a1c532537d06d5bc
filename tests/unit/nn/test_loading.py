"""Batches in order, shuffled, and prepared in the background."""

from __future__ import annotations

import threading

import pytest

from lazulite import ArgumentError, ShapeError, Tensor
from lazulite.nn.loading import DataLoader, Dataset, Subset, TensorDataset, random_split


class Squares(Dataset):
    def __getitem__(self, number: int) -> tuple[int, str]:
        if number == 13:
            raise ValueError("no thirteen")
        return number**2, threading.current_thread().name

    def __len__(self) -> int:
        return 10


def test_rows_of_tensors_come_in_batches() -> None:
    loader = DataLoader(TensorDataset(Tensor.arange(5), Tensor.arange(10).reshape(5, 2)), 2)

    assert [[0, 1], [2, 3], [4]] == [x.tolist() for x, _ in loader]
    assert 3 == len(loader)
    assert 2 == len(DataLoader(range(5), 2, drop_last=True))


def test_a_seed_fixes_the_order_of_every_pass() -> None:
    one, two = [DataLoader(list(range(20)), 20, shuffle=True, seed=4) for _ in range(2)]
    first, second = [next(iter(one)).tolist() for _ in range(2)]

    assert sorted(first) == list(range(20)) and first != second
    assert [first, second] == [next(iter(two)).tolist() for _ in range(2)]


def test_workers_keep_the_order_and_raise_where_the_loop_is() -> None:
    found = list(DataLoader(Squares(), 3, num_workers=2))

    assert [n**2 for n in range(10)] == [n for numbers, _ in found for n in numbers.tolist()]
    assert all(name.startswith("lazulite-loader") for _, names in found for name in names)
    with pytest.raises(ValueError, match="no thirteen"):
        list(DataLoader(Squares(), 1, sampler=[1, 13], num_workers=1))


def test_a_split_takes_every_sample_once() -> None:
    parts = random_split(list(range(10)), [0.5, 0.25, 0.25])

    assert list(range(10)) == sorted(part[n] for part in parts for n in range(len(part)))
    assert 2 == Subset([5, 6, 2], [2])[0]
    with pytest.raises(ArgumentError, match="do not add up to 4"):
        random_split([1, 2, 3, 4], [3, 3])


def test_loaders_without_meaning_are_refused() -> None:
    with pytest.raises(ArgumentError, match="batch_size"):
        DataLoader([1], 0)
    with pytest.raises(ArgumentError, match="a sampler says the order"):
        DataLoader([1], shuffle=True, sampler=[0])
    with pytest.raises(ShapeError, match="one length"):
        TensorDataset(Tensor([1]), Tensor([1, 2]))
