"""The kernels of a program, in order, while some of them become one: who reads and writes what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lazulite.analysis.contraction import contraction
from lazulite.ir import ops
from lazulite.ir.uop import UOp, toposort
from lazulite.schedule.kernels import Kernel, Memory


class KernelList:
    """The kernels by position, with who reads and writes what."""

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels: dict[int, Kernel] = {}
        self.readers: dict[Memory | None, set[int]] = {}
        self.writers: dict[Memory, list[int]] = {}
        self._contractions: dict[UOp, list[UOp]] = {}
        for position, kernel in enumerate(kernels):
            self._enter(position, kernel)

    def is_disturbed(self, producer: int, reader: int) -> bool:
        """Whether what the producer reads is written before the reader is done."""
        reads = self.kernels[producer].reads
        return any(producer < writer <= reader for memory in reads for writer in self.writers.get(memory, ()))

    def is_needed(self, first: int, last: int) -> bool:
        """Whether a kernel up to the last one reads what the first one writes."""
        memories = [memory for memory, _ in self.kernels[first].writes]
        return any(first < reader <= last for memory in memories for reader in self.readers.get(memory, ()))

    def contractions(self, *positions: int) -> list[UOp]:
        """The contractions of kernels."""
        found: list[UOp] = []
        for sink in [self.kernels[position].sink for position in positions]:
            if sink not in self._contractions:
                self._contractions[sink] = [node for node in toposort(sink) if contraction(node) is not None]
            found += self._contractions[sink]
        return found

    def join(self, producer: int, joined: Iterable[tuple[int, Kernel]]) -> None:
        """Put joined kernels where the readers of a kernel's value were."""
        self._remove(producer)
        for reader, kernel in joined:
            self._remove(reader)
            self._enter(reader, kernel)

    def can_move(self, position: int, place: int) -> bool:
        """Whether a kernel can run at the place of an earlier one, whose value it reads, as well."""
        kernel, written = self.kernels[position], {memory for memory, _ in self.kernels[place].writes}
        before = [w for memory in kernel.reads - written for w in self.writers.get(memory, ())]
        after = [other for m, _ in kernel.writes for other in (*self.readers.get(m, ()), *self.writers[m])]
        return not any(place < other < position for other in (*before, *after))

    def move(self, position: int, place: int, joined: Kernel) -> None:
        """Put a joined kernel where the earlier of its parts was."""
        self._remove(position)
        self._remove(place)
        self._enter(place, joined)

    def can_unite(self, first: int, last: int) -> bool:
        """Whether one kernel can do the work of two, in the place of the later one, or in that of the earlier one if
        its result is wanted before; neither reads what the other writes."""
        pair = self.kernels[first], self.kernels[last]
        if any(memory in other.reads for one, other in (pair, pair[::-1]) for memory, _ in one.writes):
            return False
        return self.can_move(last, first) if self.is_needed(first, last) else not self.is_disturbed(first, last)

    def unite(self, first: int, last: int, joined: Kernel) -> None:
        """Put a joined kernel in place of two."""
        if self.is_needed(first, last):
            self.move(last, first, joined)
        else:
            self.join(first, [(last, joined)])

    def _remove(self, position: int) -> None:
        kernel = self.kernels.pop(position)
        for memory in kernel.reads:
            self.readers[memory].discard(position)
        for memory, _ in kernel.writes:
            self.writers[memory] = [writer for writer in self.writers[memory] if writer != position]

    def _enter(self, position: int, kernel: Kernel) -> None:
        self.kernels[position] = kernel
        for memory in kernel.reads:
            self.readers.setdefault(memory, set()).add(position)
        for memory, _ in kernel.writes:
            self.writers.setdefault(memory, []).append(position)


def only_intermediate(kernel: Kernel) -> UOp | None:
    """The value that is all a kernel writes, by one plain statement, into memory of the graph's own."""
    if len(kernel.writes) != 1 or len(kernel.sink.src) != 1 or len(kernel.sink.src[0].src) != 3:
        return None
    memory = kernel.writes[0][0]
    return memory if isinstance(memory, UOp) and kernel.sink.src[0].op is ops.STORE else None
