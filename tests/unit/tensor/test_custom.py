"""Kernels written by hand, in the order of the program."""

from __future__ import annotations

from typing import Any

import pytest

from lazulite import ArgumentError, Context, DeviceError, EffectError, KernelInfo, Tensor, UOp
from lazulite.ir.parse import parse
from lazulite.ir.text import to_text


@pytest.fixture(params=["PYTHON", "CPU"])
def device(request: Any) -> str:
    return str(request.param)


def double(out: UOp, x: UOp) -> UOp:
    i = UOp.range(3, 0)
    return out[i].store(x[i] * 2)


def bump(memory: UOp) -> UOp:
    i = UOp.range(3, 0)
    return UOp.sink(memory[i].store(memory[i] + 1), arg=KernelInfo("bump"))


def test_the_written_tensor_holds_the_result_and_the_rest_what_they_held(device: str) -> None:
    """A6: a read before the call and an argument that is assigned after it see the old values."""
    out, x = Tensor([0, 0, 0], device=device), Tensor([1, 2, 3], device=device)
    before = out + 0
    results = out.custom_kernel(x, fxn=double)
    total = out + x
    x.assign([9, 9, 9])

    assert [3, 6, 9] == total.tolist()
    assert ([2, 4, 6], [0, 0, 0], [9, 9, 9]) == (out.tolist(), before.tolist(), x.tolist())
    assert ([2, 4, 6], [1, 2, 3]) == tuple([result.tolist() for result in results])


def test_a_result_that_was_only_read_does_not_hide_the_write(device: str) -> None:
    """A6"""
    out, x = Tensor([0, 0, 0], device=device), Tensor([1, 2, 3], device=device)
    _, same = out.custom_kernel(x, fxn=double)

    assert [1, 2, 3] == same.tolist()
    assert [2, 4, 6] == out.tolist()


def test_calls_chain_and_are_realized_together(device: str) -> None:
    """A6: read-only arguments in a chain, with writes of other kinds between."""
    x, first, second = [Tensor(values, device=device) for values in ([1, 2, 3], [0, 0, 0], [0, 0, 0])]
    _, same = first.custom_kernel(x, fxn=double)
    second.custom_kernel(same, fxn=double)
    first += 10
    first.custom_kernel(fxn=bump)
    Tensor.realize(first, second, same)

    assert ([13, 15, 17], [2, 4, 6], [1, 2, 3]) == (first.tolist(), second.tolist(), same.tolist())


def test_each_call_on_one_tensor_sees_the_one_before(device: str) -> None:
    """A6"""
    x = Tensor([1, 2, 3], device=device).realize()
    seen = []
    for _ in range(3):
        x.custom_kernel(fxn=bump)
        seen += [Tensor(x), x + 0]

    assert [[n + k for n in (1, 2, 3)] for k in (1, 1, 2, 2, 3, 3)] == [tensor.tolist() for tensor in seen]


def test_arguments_may_be_parts_of_one_memory(device: str) -> None:
    """A6: of different sizes, and read as they were before the write."""

    def weighed(out: UOp, x: UOp, one: UOp) -> UOp:
        i = UOp.range(3, 0)
        return out[i].store(x[i] * one[0])

    x = Tensor([2, 3, 4], device=device).realize()
    x.custom_kernel(x, x[1:2], fxn=weighed)

    assert [6, 9, 12] == x.tolist()


def test_a_view_and_a_pending_value_are_written_like_any_other(device: str) -> None:
    base = Tensor([[1, 2, 3], [4, 5, 6]], device=device).realize()
    base[1].custom_kernel(fxn=bump)
    pending = base[0] * 2
    pending.custom_kernel(fxn=bump)

    assert ([3, 5, 7], [[1, 2, 3], [5, 6, 7]]) == (pending.tolist(), base.tolist())


def test_a_sum_over_a_range(device: str) -> None:
    def product(c: UOp, a: UOp, b: UOp) -> UOp:
        i, j, k = UOp.range(2, 0), UOp.range(2, 1), UOp.range(3, 2)
        return c[i, j].store((a[i, k] * b[k, j]).reduce(k))

    a, b = Tensor([[1, 2, 3], [4, 5, 6]], device=device), Tensor([[1, 2], [3, 4], [5, 6]], device=device)
    c = Tensor.zeros(2, 2, dtype="int32", device=device)

    assert [[22, 28], [49, 64]] == c.custom_kernel(a, b, fxn=product)[0].tolist()


@pytest.mark.parametrize("realized", [False, True])
def test_a_write_inside_a_function_with_a_gradient_of_its_own(device: str, realized: bool) -> None:
    """B011"""
    x = Tensor([1.0] * 3, device=device, requires_grad=True)
    y = x.clone()
    y.custom_kernel(fxn=bump, grad_fxn=lambda upstream, call: upstream)
    y = y * 1
    if realized:
        y.realize()

    assert ([1.0, 1.0, 1.0], [2.0, 2.0, 2.0]) == (y.sum().gradient(x)[0].tolist(), y.tolist())


def test_a_write_after_a_kernel_keeps_its_gradient(device: str) -> None:
    """A3"""
    x = Tensor([1.0, 2.0, 3.0], device=device)
    y = x.clone()
    y.custom_kernel(fxn=lambda m: double(m, m), grad_fxn=lambda upstream, call: upstream * 2)
    y *= y

    assert [8.0, 16.0, 24.0] == y.sum().gradient(x)[0].tolist()
    assert [4.0, 16.0, 36.0] == y.tolist()


def test_a_kernel_that_reads_elsewhere_what_it_writes_is_refused_where_it_is_called(device: str) -> None:
    def reverse(memory: UOp) -> UOp:
        i = UOp.range(3, 0)
        return memory[i].store(memory[2 + i * -1])

    x = Tensor([1, 2, 3], device=device).realize()
    with pytest.raises(EffectError, match="in other places than it writes it"):
        x.custom_kernel(fxn=reverse)
    assert [1, 2, 3] == x.tolist()


def test_one_tensor_in_two_written_slots_is_refused(device: str) -> None:
    def both(a: UOp, b: UOp) -> UOp:
        i = UOp.range(3, 0)
        return UOp.sink(a[i].store(b[i] + 1), b[i].store(b[i] + 2))

    x = Tensor([1, 2, 3], device=device)
    with pytest.raises(EffectError, match="two of its slots"):
        x.custom_kernel(x, fxn=both)


def test_a_tensor_read_elsewhere_in_another_slot_is_read_as_it_was(device: str) -> None:
    """A1, A6: the kernel runs in other memory, and what it leaves is copied."""

    def reverse(out: UOp, x: UOp) -> UOp:
        i = UOp.range(3, 0)
        return out[i].store(x[2 + i * -1])

    x = Tensor([1, 2, 3], device=device).realize()
    x.custom_kernel(x, fxn=reverse)

    assert [3, 2, 1] == x.tolist()


def test_old_contents_are_written_to_a_tensor_that_a_kernel_reads(device: str) -> None:
    """A1, A6: each of two writes waits for the other, so one of them goes through a copy."""
    x, y = Tensor([[1, 2, 3]], device=device), Tensor([[4, 5, 6]], device=device)
    old_x, old_y = x[0].flip(0), y[0].flip(0)
    for each in (x, y):
        each.custom_kernel(fxn=lambda memory: memory[0, UOp.range(3, 0)].store(memory[0, UOp.range(3, 0)] + 1))
    x[0] += old_y
    y[0] += old_x

    assert ([[8, 8, 8]], [[8, 8, 8]]) == (x.tolist(), y.tolist())


def test_results_realized_one_by_one_and_a_write_between(device: str) -> None:
    """A6: a call with two results leaves both, whenever each is looked at."""

    def both(a: UOp, b: UOp, x: UOp) -> UOp:
        i = UOp.range(3, 0)
        return UOp.sink(a[i].store(x[i] * 2), b[i].store(x[i] + 1))

    a, b, x = [Tensor(values, device=device) for values in ([0, 0, 0], [0, 0, 0], [1, 2, 3])]
    a.custom_kernel(b, x, fxn=both)
    first = a.clone().realize()
    x.assign([7, 7, 7])
    b += x

    assert ([2, 4, 6], [9, 10, 11], [2, 4, 6]) == (first.tolist(), b.tolist(), a.tolist())


def test_the_name_and_the_line_of_a_kernel_are_told(device: str, capfd: Any) -> None:
    """A43"""
    x = Tensor([1, 2, 3], device=device)
    x.custom_kernel(fxn=bump)
    with Context(DEBUG=2):
        x.realize()
    line = next(line for line in capfd.readouterr().err.splitlines() if "bump" in line)

    assert "test_custom.py:" in line


def test_a_name_is_part_of_the_text() -> None:
    kernel = bump(UOp.range(1, 0).replace(op=parse("param p0 int32[3]\nreturn p0").op, arg=(0, (3,), ""), src=()))
    assert to_text(kernel).startswith("kernel bump\n")
    assert KernelInfo("bump") == parse(to_text(kernel)).arg


def test_mistakes_are_named(device: str) -> None:
    x = Tensor([1, 2, 3], device=device)
    for wrong in (lambda memory: memory, lambda memory: None, lambda memory: UOp.sink(bump(memory).src[0], arg="x y")):
        with pytest.raises(ArgumentError, match="custom_kernel"):
            x.custom_kernel(fxn=wrong)
    with pytest.raises(DeviceError, match="different devices"):
        x.custom_kernel(Tensor([1], device="NPY"), fxn=double)
    memory = parse("param p0 int32[3]\nreturn p0")
    for wrong_index in (lambda: memory[0, 0], lambda: (memory + 1)[0], lambda: list(memory)):
        with pytest.raises(TypeError):
            wrong_index()
