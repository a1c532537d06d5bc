"""Kernels in order, while some of them become one."""

from __future__ import annotations

from dataclasses import replace

from lazulite.schedule.kernel_list import KernelList, only_intermediate
from support.schedules import buffer, matmul, scheduled, softmax


def chain() -> KernelList:
    """Attention of so few rows that its kernels stay apart."""
    q, k, v = buffer(1, 32, 16), buffer(2, 16, 96), buffer(3, 96, 16)
    return KernelList(scheduled([matmul(softmax(matmul(q, k)), v)]).schedule.kernels)


def test_readers_and_writers_are_known():
    kernels = chain()
    first = only_intermediate(kernels.kernels[0])

    assert first is not None
    assert [0] == kernels.writers[first]
    assert kernels.readers[first]
    assert kernels.is_needed(0, max(kernels.kernels))


def test_nothing_is_left_of_a_kernel_that_has_been_joined():
    kernels = chain()
    first = only_intermediate(kernels.kernels[0])
    reader = min(kernels.readers[first])
    joined = replace(kernels.kernels[reader], reads=kernels.kernels[reader].reads - {first})
    kernels.join(0, [(reader, joined)])

    assert 0 not in kernels.kernels
    assert reader not in kernels.readers[first]
    assert joined is kernels.kernels[reader]


def test_a_kernel_moves_up_only_past_what_it_does_not_wait_for():
    kernels = chain()
    first = only_intermediate(kernels.kernels[0])

    assert kernels.can_move(min(kernels.readers[first]), 0)
    assert not kernels.can_move(max(kernels.kernels), 0)


def test_contractions_are_told_for_all_of_some_kernels():
    kernels = chain()

    assert 2 == len(kernels.contractions(*kernels.kernels))
