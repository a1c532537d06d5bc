"""Memory of one device with free lists.

`allocate` takes freed memory of the same size and options before it asks the system.  When the limit
is reached or the system has none, everything that is only cached is released and the request is tried
once more; then it is an `OutOfMemoryError`.

`free` may run inside a finalizer, at any moment and while the lock is held: it only notes the handle.
Invariant: a handle is either live, or in a free list, or forgotten; memory that is `shared` is never
in a free list.  Live handles are held weakly, so one that an interrupt lost is not counted for ever.
A request that a free list answers changes that list, the handle and two sums, and nothing else.
"""

from __future__ import annotations

import gc
import threading
from collections import deque
from collections.abc import Callable
from weakref import WeakSet

from lazulite.base.errors import OutOfMemoryError
from lazulite.base.origin import Origin
from lazulite.base.terminal import size_text
from lazulite.runtime.forking import renew_after_fork
from lazulite.runtime.memory import DEFAULT_OPTIONS, Handle, Options

_LARGEST_SHOWN = 5
_allocators: WeakSet[Allocator] = WeakSet()


class Allocator:
    """`acquire` and `release` are the system's side; `limit` and `cached_limit` (bytes) may be changed."""

    def __init__(
        self, device: str, acquire: Callable[[int, Options], Handle], release: Callable[[Handle], None],
        limit: int, cached_limit: int,
    ) -> None:  # fmt: skip
        self.device, self.limit, self.cached_limit = device, limit, cached_limit
        self._acquire, self._release = acquire, release
        self._free: dict[tuple[int, Options], list[Handle]] = {}
        self._known: WeakSet[Handle] = WeakSet()
        """What came from the system, whether live or not."""
        self._in_use = self._cached = 0
        self._returned: deque[Handle] = deque()
        self._lock = threading.Lock()
        _allocators.add(self)
        renew_after_fork(self)

    def after_fork(self) -> None:
        self._lock = threading.Lock()

    # --- what devices call ----------------------------------------------------------------------

    def allocate(self, size: int, options: Options = DEFAULT_OPTIONS, label: str | Origin = "") -> Handle:
        """Memory with any contents."""
        handle = self._try(size, options, label)
        if handle is None:
            self.relieve()
            handle = self._try(size, options, label)
        if handle is None:
            raise self._out_of_memory(size)
        return handle

    def free(self, handle: Handle) -> None:
        """Note that the memory is not used any more.  Safe in finalizers."""
        self._returned.append(handle)
        if not self._lock.locked():  # else it is sorted with the next request, perhaps of this very thread
            with self._lock:
                self._sort_returned()

    def relieve(self) -> None:
        """Give everything that nobody uses back to the system."""
        gc.collect()  # outside the lock: finalizers run here
        with self._lock:
            self._sort_returned()
            self._shrink(0)
            self._in_use = sum([handle.size for handle in self._live()])

    @property
    def in_use(self) -> int:
        """Bytes that are allocated now."""
        with self._lock:
            self._sort_returned()
            return self._in_use

    @property
    def cached(self) -> int:
        """Bytes in the free lists."""
        with self._lock:
            self._sort_returned()
            return self._cached

    # --- under the lock -------------------------------------------------------------------------

    def _try(self, size: int, options: Options, label: str | Origin) -> Handle | None:
        with self._lock:
            if self._returned:
                self._sort_returned()
            key = size, options
            handles = self._free.get(key)
            if handles:
                handle = handles.pop()
                if not handles:
                    del self._free[key]
                self._cached -= size
            else:
                fresh = self._fresh(size, options)
                if fresh is None:
                    return None
                handle = fresh
            handle.label, handle.live = label, True
            self._in_use += size
            return handle

    def _fresh(self, size: int, options: Options) -> Handle | None:
        if self._in_use + self._cached + size > self.limit:
            return None
        try:
            handle = self._acquire(size, options)
        except (MemoryError, OSError, OverflowError):
            return None
        self._known.add(handle)
        return handle

    def _live(self) -> list[Handle]:
        return [handle for handle in self._known if handle.live]

    def _sort_returned(self) -> None:
        while self._returned:
            handle = self._returned.popleft()
            if not handle.live:
                continue
            handle.live = False
            self._in_use -= handle.size
            if handle.options.reusable and not handle.shared:
                self._free.setdefault((handle.size, handle.options), []).append(handle)
                self._cached += handle.size
            else:
                self._release(handle)
        if self._cached > self.cached_limit:
            self._shrink(self.cached_limit)

    def _shrink(self, target: int) -> None:
        """Release cached memory, the sizes unused for longest first."""
        while self._cached > target:
            key = next(iter(self._free))
            handles = self._free[key]
            self._cached -= key[0]
            self._release(handles.pop())
            if not handles:
                del self._free[key]

    def _out_of_memory(self, size: int) -> OutOfMemoryError:
        with self._lock:
            in_use, live = self._in_use, self._live()
        largest = sorted(live, key=lambda handle: -handle.size)[:_LARGEST_SHOWN]
        return OutOfMemoryError(
            "allocate",
            f"{self.device} has no room for {size_text(size)}, {size_text(in_use)} of {size_text(self.limit)} in use",
            about={f"largest {i}": f"{size_text(h.size)} {_place(h.label)}" for i, h in enumerate(largest, 1)},
            hint="free tensors that are no longer needed, or work on smaller parts",
        )


def _place(label: str | Origin) -> str:
    return label.place if isinstance(label, Origin) else label


def memory_in_use() -> int:
    """Bytes allocated on all devices."""
    return sum([allocator.in_use for allocator in list(_allocators)])


def memory_cached() -> int:
    """Bytes in the free lists of all devices."""
    return sum([allocator.cached for allocator in list(_allocators)])
