"""Hand-written graphs run: stores and calls in their order, once, with gradients, or not at all."""

from __future__ import annotations

import pytest

from lazulite import Tensor
from lazulite.base.errors import EffectError, GradientError
from lazulite.engine.storage import storage_of
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.parse import parse
from lazulite.ir.uop import UOp
from lazulite.runtime.buffer import Buffer
from lazulite.runtime.registry import Device

DOUBLE = parse("kernel\nparam p0 float32[3]\nparam p1 float32[3]\nloop r0 in 0..3\np0[r0] = p1[r0] * 2.0")
DOUBLE_IN_PLACE = parse("kernel\nparam p0 float32[3]\nloop r0 in 0..3\np0[r0] = p0[r0] * 2.0")
REVERSE = parse("kernel\nparam p0 float32[3]\nparam p1 float32[3]\nloop r0 in 0..3\np0[r0] = p1[2 - r0]")
TWO_RESULTS = parse("""
    kernel
    param p0 float32[3]
    param p1 float32[3]
    param p2 float32[3]
    loop r0 in 0..3
    p0[r0] = p2[r0] * 2.0
    p1[r0] = p2[r0] + 1.0
""")


@pytest.fixture(params=["PYTHON", "CPU"])
def device(request):
    return request.param


@pytest.fixture
def x(device):
    return Tensor([1.0, 2.0, 3.0], device=device)


@pytest.fixture
def out(device):
    return Tensor([0.0, 0.0, 0.0], device=device)


def after(tensor: Tensor, *effects: UOp) -> Tensor:
    return Tensor(tensor.uop.after(*effects))


# --- stores --------------------------------------------------------------------------------------


def test_a_store_beside_a_value_changes_its_own_storage_only(device):
    """A1."""
    x, state = Tensor([2], device=device), Tensor([0], device=device)
    result = Tensor(x.uop.after(state.uop.store(x.uop * 3)) + x.uop).realize()

    assert ([4], [6], [2]) == (result.tolist(), state.tolist(), x.tolist())


def test_the_value_of_a_written_storage_is_that_storage(x):
    a = x.uop.after(x.uop.store(1))
    result = Tensor(a.after(a.store(2))).realize()

    assert [2.0, 2.0, 2.0] == x.tolist()
    assert x.uop is result.uop


def test_a_store_is_executed_once(x):
    added = x.uop.after(x.uop.store(x.uop + 1))
    Tensor(added).realize()
    later = Tensor(added + 0)

    assert ([2.0, 3.0, 4.0], [2.0, 3.0, 4.0]) == (later.tolist(), x.tolist())


def test_live_readers_keep_the_contents_before(x):
    before = x * 3
    after(x, x.uop.store(7)).realize()

    assert ([3.0, 6.0, 9.0], [7.0, 7.0, 7.0]) == (before.tolist(), x.tolist())


def test_a_cycle_leaves_every_tensor_as_it_was_and_raises_again(x, device):
    """A1."""
    y, z = Tensor([4.0, 5.0, 6.0], device=device), Tensor([0.0, 0.0, 0.0], device=device)
    graph = after(x, x.uop.store(y.uop), y.uop.store(x.uop), z.uop.store(9))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="cycle"):
            graph.realize()

    assert [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [0.0, 0.0, 0.0]] == [t.tolist() for t in (x, y, z)]


def test_a_store_into_replaced_contents_is_refused(x):
    value = x.uop.after(x.uop.store(7))
    x.assign(Tensor([5.0, 5.0, 5.0], device=x.device)).realize()

    with pytest.raises(EffectError, match="later write"):
        Tensor(value).realize()
    assert [5.0, 5.0, 5.0] == x.tolist()


def test_a_tensor_and_a_graph_that_both_write_are_not_ordered(x, out):
    graph = after(x, x.uop.store(7))
    x.assign(Tensor([5.0, 5.0, 5.0], device=x.device))

    with pytest.raises(EffectError, match="nothing orders them"):
        graph.realize()
    with pytest.raises(EffectError, match="nothing orders them"):
        x.realize()
    assert [1.0, 1.0, 1.0] == (out + 1).tolist()  # all others go on


# --- calls ---------------------------------------------------------------------------------------


def test_a_kernel_writes_the_memory_it_is_given(x, out):
    """A2."""
    result = after(out, DOUBLE.call(out.uop, x.uop + 1))

    assert ([4.0, 6.0, 8.0], [4.0, 6.0, 8.0]) == (result.tolist(), out.tolist())


def test_calls_in_place_chain_and_reads_between_them_see_the_first(x):
    once = x.uop.after(DOUBLE_IN_PLACE.call(x.uop))
    total = Tensor(once).sum()
    twice = Tensor(once.after(DOUBLE_IN_PLACE.call(once))).realize(total)

    assert (12.0, [4.0, 8.0, 12.0], [4.0, 8.0, 12.0]) == (total.tolist(), twice.tolist(), x.tolist())


def test_a_kernel_may_fill_several_memories(x, out, device):
    other = Tensor.zeros(3, device=device)
    after(out, TWO_RESULTS.call(out.uop, other.uop, x.uop)).realize()

    assert ([2.0, 4.0, 6.0], [2.0, 3.0, 4.0]) == (out.tolist(), other.tolist())


def test_one_memory_in_two_slots_is_written_in_place(x):
    assert [2.0, 4.0, 6.0] == after(x, DOUBLE.call(x.uop, x.uop)).tolist()


def test_a_kernel_that_reads_what_it_writes_elsewhere_is_a_cycle(x, out):
    """A1."""
    graph = after(x, REVERSE.call(x.uop, x.uop))
    for _ in range(2):
        with pytest.raises(EffectError, match="cycle"):
            graph.realize()

    assert [3.0, 2.0, 1.0] == after(out, REVERSE.call(out.uop, x.uop)).tolist()
    assert [1.0, 2.0, 3.0] == x.tolist()


def test_the_calls_of_a_list_run_in_order(x, out, device):
    """A2."""
    first, second = [UOp(ops.PARAM, dtypes.float32, (), (slot, (3,), device)) for slot in range(2)]
    add = UOp.sink(first.store(first + second))
    both = UOp(ops.LINEAR, dtypes.void, (add.call(first, second), add.call(second, first)))

    assert [2.0, 4.0, 6.0] == after(x, both.call(out.uop, x.uop)).tolist()
    assert [1.0, 2.0, 3.0] == out.tolist()


def test_a_program_that_hides_its_accesses_leaves_everything_untouched(x, out):
    """A2."""
    graph = after(out, UOp(ops.PROGRAM, dtypes.void).call(out.uop, x.uop))
    for _ in range(2):
        with pytest.raises(EffectError, match="cannot compute accesses"):
            graph.realize()

    assert ([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]) == (out.tolist(), x.tolist())


# --- gradients -----------------------------------------------------------------------------------


def test_a_store_has_the_gradient_of_its_value(x):
    """A3."""
    (gradient,) = after(x, x.uop.store(x.uop * x.uop)).sum().gradient(x)

    assert [2.0, 4.0, 6.0] == gradient.tolist()


def test_an_unrelated_store_is_no_path(x, out):
    """A3."""
    result = after(x, out.uop.store(5)).sum()

    assert [1.0, 1.0, 1.0] == result.gradient(x)[0].tolist()


def test_a_kernel_in_place_has_the_gradient_it_was_given(x):
    """A3, A6."""
    doubled = after(x, DOUBLE_IN_PLACE.call(x.uop, grad_fxn=lambda upstream, call: (upstream * 2,)))

    assert [2.0, 2.0, 2.0] == doubled.sum().gradient(x)[0].tolist()


def test_a_gradient_that_needs_the_result_runs_the_kernel(x, out):
    """A3."""
    doubled = after(out, DOUBLE.call(out.uop, x.uop, grad_fxn=lambda upstream, call: (None, upstream * 2)))

    assert [8.0, 16.0, 24.0] == doubled.square().sum().gradient(x)[0].tolist()
    assert [2.0, 4.0, 6.0] == out.tolist()


def test_a_kernel_without_a_gradient_is_named(x, out):
    with pytest.raises(GradientError, match="without a gradient"):
        after(out, DOUBLE.call(out.uop, x.uop)).sum().gradient(x)


def _second(upstream: UOp, call: UOp) -> tuple[UOp | None, UOp]:
    return None, upstream


def test_aliased_arguments_have_no_gradient(x):
    """A3."""
    with pytest.raises(GradientError, match="aliased write"):
        after(x, DOUBLE.call(x.uop, x.uop, grad_fxn=_second)).sum().gradient(x)


def test_memory_that_others_see_has_no_gradient(x):
    """A3."""
    storage = storage_of(x.uop)
    assert storage.buffer is not None
    storage.buffer = Buffer(Device[x.device], 64).allocate().view(0, storage.nbytes)

    with pytest.raises(GradientError, match="aliased write"):
        after(x, x.uop.store(x.uop * 2)).sum().gradient(x)


def test_one_memory_as_two_outputs_is_ambiguous(x, out):
    """A3."""
    call = TWO_RESULTS.call(out.uop, out.uop, x.uop, grad_fxn=lambda first, second, call: (None, None, first))
    with pytest.raises(GradientError, match="ambiguous CALL"):
        after(out, call).sum().gradient(x)
