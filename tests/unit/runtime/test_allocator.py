import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.base.errors import OutOfMemoryError
from lazulite.base.origin import Origin
from lazulite.runtime.allocator import Allocator, memory_in_use
from lazulite.runtime.memory import Handle, Options


class System:
    """Stands for the system's memory, and counts."""

    def __init__(self, limit=1000, cached_limit=1000):
        self.acquired = self.released = 0
        self.failures = 0
        self.allocator = Allocator("TEST", self.acquire, self.release, limit, cached_limit)

    def acquire(self, size, options):
        if self.failures:
            self.failures -= 1
            raise MemoryError
        self.acquired += size
        return Handle(size, options=options)

    def release(self, handle):
        self.released += handle.size


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 300), st.booleans()), max_size=40))
def test_bytes_are_in_use_or_cached_or_back_with_the_system(steps):
    system, live = System(cached_limit=400), []
    for frees, number, reusable in steps:
        if frees and live:
            system.allocator.free(live.pop(number % len(live)))
            continue
        try:
            handle = system.allocator.allocate(number, Options(reusable=reusable))
        except OutOfMemoryError:
            assert sum(h.size for h in live) + number > 1000
            continue
        assert all(handle is not other for other in live)
        live.append(handle)
    in_use, cached = system.allocator.in_use, system.allocator.cached
    assert in_use == sum(handle.size for handle in live)
    assert cached <= 400
    assert in_use + cached == system.acquired - system.released


def test_what_the_system_refuses_is_tried_once_more_after_the_free_lists_are_emptied():
    """A26"""
    system = System()
    system.allocator.free(system.allocator.allocate(100))
    system.failures = 1
    system.allocator.allocate(200)
    assert system.released == 100
    system.failures = 2
    with pytest.raises(OutOfMemoryError):
        system.allocator.allocate(200)
    assert system.failures == 0


def test_memory_that_somebody_else_may_see_is_not_reused():
    """A25"""
    system = System()
    handle = system.allocator.allocate(100)
    handle.shared = True
    system.allocator.free(handle)
    assert (system.allocator.cached, system.released) == (0, 100)


def test_a_finalizer_may_free_while_memory_is_being_allocated():
    """A54"""
    system = System()
    first = system.allocator.allocate(100)
    acquire = system.allocator._acquire

    def interrupted(size, options):
        system.allocator.free(first)
        return acquire(size, options)

    system.allocator._acquire = interrupted
    system.allocator.allocate(50)
    system.allocator._acquire = acquire
    assert system.allocator._returned
    assert system.allocator.allocate(100) is first
    assert (system.allocator.in_use, system.allocator.cached) == (150, 0)


def test_freeing_twice_counts_once():
    system = System()
    handle = system.allocator.allocate(100)
    system.allocator.free(handle)
    system.allocator.free(handle)
    assert (system.allocator.in_use, system.allocator.cached) == (0, 100)
    assert system.allocator.allocate(100) is not system.allocator.allocate(100)


def test_memory_that_an_interrupt_lost_is_found_again_under_pressure():
    system = System()
    system.allocator.allocate(900)  # nobody keeps the handle
    kept = system.allocator.allocate(800)
    assert system.allocator.in_use == kept.size == 800


def test_the_error_names_the_device_the_sizes_and_where_the_largest_were_made():
    """A26"""
    system = System()
    held = [
        system.allocator.allocate(500, label=Origin.at("model.py", 12)),
        system.allocator.allocate(20, label="bias"),
    ]
    with pytest.raises(OutOfMemoryError) as caught:
        system.allocator.allocate(700)
    assert len(held) == 2
    message = str(caught.value)
    assert "TEST has no room for 700 B, 520 B of 1.00 KB in use" in message
    assert message.index("500 B model.py:12") < message.index("20 B bias")


def test_memory_of_all_devices_is_counted_together():
    first, second = System(), System()
    before = memory_in_use()
    held = first.allocator.allocate(30), second.allocator.allocate(12)
    assert (memory_in_use() - before, len(held)) == (42, 2)
