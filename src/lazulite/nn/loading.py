"""Data in batches: data sets, samplers, and a loader whose workers prepare batches in the background.

A data set has a length and gives a sample for a number.  Samples are numbers, arrays, tensors, or tuples, lists and
dictionaries of these; `collate` stacks them.  Workers are threads: they read and decode while the model computes.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from lazulite.base.errors import ArgumentError, ShapeError
from lazulite.tensor.tensor import Tensor


class Dataset:
    """What has a length and gives a sample for a number; derive from it, or use any sequence."""

    def __getitem__(self, number: int) -> Any:
        raise NotImplementedError(f"{type(self).__name__} gives no samples")

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no length")


class TensorDataset(Dataset):
    """The rows of several tensors of one length.

    >>> [part.tolist() for part in TensorDataset(Tensor([[1], [2]]), Tensor([3, 4]))[1]]
    [[2], 4]
    """

    def __init__(self, *tensors: Tensor) -> None:
        if not tensors or len({tensor.shape[0] for tensor in tensors}) > 1:
            raise ShapeError("TensorDataset", f"one length is needed, got {[t.shape for t in tensors]}")
        self.tensors = tensors

    def __getitem__(self, number: Any) -> tuple[Tensor, ...]:
        return tuple([tensor[number] for tensor in self.tensors])

    def __len__(self) -> int:
        return self.tensors[0].shape[0]

    def batch(self, numbers: Sequence[int]) -> tuple[Tensor, ...]:
        """Several rows at once."""
        return tuple([tensor[list(numbers)] for tensor in self.tensors])


class Subset(Dataset):
    """Some samples of a data set.

    >>> Subset([5, 6, 7], [2, 0])[0]
    7
    """

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, number: int) -> Any:
        return self.dataset[self.indices[number]]

    def __len__(self) -> int:
        return len(self.indices)


def random_split(dataset: Any, lengths: Sequence[float], seed: int = 0) -> list[Subset]:
    """The data set in parts drawn at random: numbers of samples, or shares that add up to 1.

    >>> [len(part) for part in random_split(range(10), [0.8, 0.2])]
    [8, 2]
    """
    count = len(dataset)
    sizes = [int(share * count) for share in lengths] if abs(sum(lengths) - 1) < 1e-9 else list(map(int, lengths))
    for number in range(count - sum(sizes) if sum(lengths) < 1 + 1e-9 else 0):
        sizes[number % len(sizes)] += 1
    if sum(sizes) != count:
        raise ArgumentError("random_split", f"{sizes} do not add up to {count} samples")
    order, parts, begin = list(range(count)), [], 0
    random.Random(seed).shuffle(order)
    for size in sizes:
        parts.append(Subset(dataset, order[begin : begin + size]))
        begin += size
    return parts


def collate(samples: Sequence[Any]) -> Any:
    """Samples as one batch: tensors and arrays are stacked, numbers become a tensor, containers are gone through.

    >>> batch = collate([(1.0, {"a": 2}), (3.0, {"a": 4})]); batch[0].tolist(), batch[1]["a"].tolist()
    ([1.0, 3.0], [2, 4])
    """
    first = samples[0]
    if isinstance(first, Tensor):
        return first.stack(*samples[1:])
    if isinstance(first, dict):
        return {key: collate([sample[key] for sample in samples]) for key in first}
    if isinstance(first, tuple | list):
        columns = [collate(column) for column in zip(*samples, strict=True)]
        return type(first)(*columns) if hasattr(first, "_fields") else type(first)(columns)
    if isinstance(first, str | bytes):
        return list(samples)
    if hasattr(first, "__array__"):
        parts = [Tensor(sample) for sample in samples]
        return parts[0].stack(*parts[1:])
    return Tensor(list(samples))


class DataLoader:
    """Batches of a data set, in order or shuffled anew in every pass.

    `seed` fixes the shuffling.  With `num_workers` threads prepare up to `prefetch_factor` batches each ahead of the
    loop.  `progress` shows a bar (with tqdm, if it is installed) and what it is called.

    >>> [batch.tolist() for batch in DataLoader([1, 2, 3, 4, 5], batch_size=2)]
    [[1, 2], [3, 4], [5]]
    """

    def __init__(
        self, dataset: Any, batch_size: int = 1, shuffle: bool = False, sampler: Iterable[int] | None = None,
        num_workers: int = 0, collate_fn: Callable[[Sequence[Any]], Any] | None = None, drop_last: bool = False,
        prefetch_factor: int = 2, seed: int | None = None, progress: str | bool = False,
    ) -> None:  # fmt: skip
        if batch_size < 1 or num_workers < 0 or prefetch_factor < 1:
            raise ArgumentError("DataLoader", "batch_size and prefetch_factor are 1 or more, num_workers 0 or more")
        if shuffle and sampler is not None:
            raise ArgumentError("DataLoader", "a sampler says the order, so shuffle does not go with it")
        self.dataset, self.batch_size, self.shuffle, self.sampler = dataset, batch_size, shuffle, sampler
        self.num_workers, self.collate_fn, self.drop_last = num_workers, collate_fn or collate, drop_last
        self.prefetch_factor, self.progress = prefetch_factor, progress
        self._random = random.Random(seed)

    def __len__(self) -> int:
        count = len(self.dataset)
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)

    def __iter__(self) -> Iterator[Any]:
        batches = self._ahead() if self.num_workers else map(self._load, self._numbers())
        return _with_bar(batches, len(self), self.progress) if self.progress else iter(batches)

    def _numbers(self) -> Iterator[list[int]]:
        order = list(range(len(self.dataset))) if self.sampler is None else list(self.sampler)
        if self.shuffle:
            self._random.shuffle(order)
        for begin in range(0, len(order), self.batch_size):
            numbers = order[begin : begin + self.batch_size]
            if len(numbers) == self.batch_size or not self.drop_last:
                yield numbers

    def _load(self, numbers: list[int]) -> Any:
        if isinstance(self.dataset, TensorDataset) and self.collate_fn is collate:
            return self.dataset.batch(numbers)
        return self.collate_fn([self.dataset[number] for number in numbers])

    def _ahead(self) -> Iterator[Any]:
        """Batches in order, several of which are being prepared; an error of a worker is raised here."""
        pending: deque[Future[Any]] = deque()
        with ThreadPoolExecutor(self.num_workers, "lazulite-loader") as pool:
            try:
                for numbers in self._numbers():
                    pending.append(pool.submit(self._load, numbers))
                    if len(pending) >= self.num_workers * self.prefetch_factor:
                        yield pending.popleft().result()
                while pending:
                    yield pending.popleft().result()
            finally:
                for each in pending:
                    each.cancel()


def _with_bar(batches: Iterable[Any], count: int, progress: str | bool) -> Iterator[Any]:
    name = progress if isinstance(progress, str) else None
    try:
        from tqdm import tqdm
    except ImportError:
        return iter(batches)
    return iter(tqdm(batches, total=count, desc=name))
