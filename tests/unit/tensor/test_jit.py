"""`jit` gives what calling the function gives, whatever changes between calls."""

import gc
import subprocess
import sys
import threading
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from enum import Enum

import pytest

from lazulite import CaptureError, Context, GlobalCounters, OutOfMemoryError, Tensor, TinyJit, dtypes, jit
from lazulite.runtime.compiled_list import CompiledList
from lazulite.runtime.registry import Device
from support.capture import calls, captured


def launches(function, *arguments):
    """The result, and how many kernels ran."""
    before = GlobalCounters.kernel_count
    return function(*arguments), GlobalCounters.kernel_count - before


# --- the order of things -------------------------------------------------------------------------


def test_the_first_call_runs_the_second_captures_and_later_ones_replay():
    """A24"""
    ran = []

    @jit
    def double(x):
        ran.append(len(ran)) if len(ran) < 0 else None
        print("called")
        return x * 2

    assert captured(double) == 0
    assert [[2.0], [4.0], [6.0], [8.0]] == calls(double, *[(Tensor([float(n)]),) for n in (1, 2, 3, 4)])
    assert captured(double) == 1


def test_a_replay_does_not_run_the_function(capsys):
    """A24"""

    @jit
    def loud(x):
        print("ran")
        return x + 1

    assert [[n + 1] for n in range(5)] == calls(loud, *[(Tensor([n]),) for n in range(5)])
    assert capsys.readouterr().out == "ran\n" * 2


def test_the_anchors_name_is_the_same_thing():
    assert TinyJit is jit


def test_many_kernels_are_one_submission(monkeypatch):
    """A24, A28"""

    @jit
    def chain(x):
        with Context(FUSE=0):
            for _ in range(50):
                x = x * x - 1
            return x.realize()

    for _ in range(2):
        chain(Tensor([0]))
    submissions, run = [], CompiledList.run
    monkeypatch.setattr(CompiledList, "run", lambda *a: (submissions.append(a[0].work[0]), run(*a)))
    result, kernels = launches(chain, Tensor([1]))
    assert (submissions, kernels, result.tolist()) == ([100], 100, [-1])


# --- inputs --------------------------------------------------------------------------------------

Pair = namedtuple("Pair", "left right")


@dataclass
class Batch:
    x: Tensor
    scale: float


def test_containers_and_keywords_are_walked():
    """A24"""

    @jit
    def total(first, rest, /, pair, *, named, batch):
        return first + rest[0] + rest[1]["a"] + pair.left * pair.right + named["deep"][0][0] + batch.x * batch.scale

    def one(n):
        x = [Tensor([float(n + i)]) for i in range(7)]
        arguments = (x[0], [x[1], {"a": x[2]}]), {
            "pair": Pair(x[3], x[4]), "named": OrderedDict(deep=[(x[5],)]), "batch": Batch(x[6], 2.0)}  # fmt: skip
        return total(*arguments[0], **arguments[1]).tolist()

    for n in range(5):
        assert [n + n + 1 + n + 2 + (n + 3) * (n + 4) + n + 5 + (n + 6) * 2] == one(n)
    assert captured(total) == 1


def test_outputs_come_in_the_containers_of_the_function():
    """A24"""

    @jit
    def parts(x):
        y = x + 1
        return {"pair": Pair(y, [y, (x * 2,)]), "batch": Batch(x - 1, 0.5), "n": 3, "none": None}

    for n in range(4):
        found = parts(Tensor([n]))
        assert (found["n"], found["none"], found["batch"].scale) == (3, None, 0.5)
        assert found["pair"].left is found["pair"].right[0]
        assert [[n + 1], [n * 2], [n - 1]] == [
            t.tolist() for t in (found["pair"].left, found["pair"].right[1][0], found["batch"].x)
        ]


def test_another_length_is_another_variant():
    """B014, A24"""
    total = jit(lambda x: x.sum())
    assert calls(total, *[(Tensor([0.0, 1.0, 2.0]),)] * 3) == [3.0] * 3
    assert calls(total, (Tensor.arange(5).cast("float32"),), (Tensor.arange(8).cast("float32"),)) == [10.0, 28.0]
    assert calls(total, *[(Tensor([1.0, 1.0, 2.0]),)] * 3) == [4.0] * 3


@pytest.mark.parametrize(
    "other",
    [Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([1, 2, 3, 4]), Tensor([1.0, 2.0, 3.0, 4.0], device="PYTHON")],
    ids=["shape", "dtype", "device"],
)
def test_shape_dtype_and_device_of_every_input_are_checked(other):
    """A24"""
    double = jit(lambda x: x * 2)
    calls(double, *[(Tensor([1.0, 2.0, 3.0, 4.0]),)] * 3)
    result = double(other)
    assert (result.shape, result.dtype, result.device) == (other.shape, other.dtype, other.device)
    assert (other * 2).tolist() == result.tolist()


def test_the_limit_names_what_keeps_changing():
    """A24"""
    add = jit(lambda x, fixed: x + fixed, limit=3)
    for n in (1, 2, 3):
        add(Tensor.ones(n, 2), Tensor([5.0]))
    with pytest.raises(
        CaptureError, match=r"<lambda>: there are 3 variants.*x was .*\(3, 2\).*\(4, 2\) float32"
    ) as caught:
        add(Tensor.ones(4, 2), Tensor([5.0]))
    assert "fixed was" not in str(caught.value)
    assert [[6.0, 6.0]] == add(Tensor.ones(1, 2), Tensor([5.0])).tolist()


class Mode(Enum):
    UP = 1
    DOWN = -1


def test_values_that_are_no_numbers_select_a_variant():
    @jit
    def moved(x, mode, name, flag):
        return x + (mode.value if flag else len(name))

    for mode, name, flag in [(Mode.UP, "a", True), (Mode.DOWN, "a", True), (Mode.UP, "abc", False)] * 3:
        assert [5 + (mode.value if flag else len(name))] == moved(Tensor([5]), mode, name, flag).tolist()
    assert captured(moved) == 3


def test_the_same_tensor_may_be_passed_twice():
    """B029, A24"""
    add = jit(lambda a, b: a + b)
    for n in range(4):
        assert [2 * n + 1] == add(Tensor([n]), Tensor([n + 1])).tolist()
    x = Tensor([3])
    assert [[6]] * 4 == calls(add, *[(x, x)] * 4)
    assert [7] == add(x, Tensor([4])).tolist()


@pytest.mark.parametrize(
    "function", [lambda a: a, lambda a: a * 1, lambda a: a + 0], ids=["itself", "times 1", "plus 0"]
)
def test_an_input_may_be_returned(function):
    """B022, A24"""
    same = jit(function)
    inputs = [Tensor([n, n + 1]) for n in range(5)]
    outputs = [same(x) for x in inputs]
    assert [[n, n + 1] for n in range(5)] == [output.tolist() for output in outputs]
    if function(inputs[0]) is inputs[0]:
        assert all(map(lambda a, b: a is b, inputs, outputs))


def test_views_are_accepted():
    """B025"""
    more = jit(lambda x: x + 1)
    x = Tensor([1, 2, 3, 4])
    assert [[2], [3], [4], [5]] == calls(more, *[(x[n : n + 1],) for n in range(4)])
    table = Tensor([[1, 2], [3, 4]])
    assert [[[2, 4], [3, 5]]] * 3 == calls(more, *[(table.T,)] * 3)


def test_first_calls_with_any_contents_leave_no_trace():
    """B019"""
    more = jit(lambda x: x + 1)
    more(Tensor.empty(1))
    more(Tensor.zeros(1))
    assert [3.0] == more(Tensor([2.0])).tolist()


def test_constants_and_pending_values_may_be_passed():
    more = jit(lambda x, y: x * y)
    for n in range(4):
        assert [float(2 * n)] * 3 == more(Tensor.full((3,), float(n)), Tensor([1.0, 1.0, 1.0]) + 1).tolist()
    assert captured(more) == 1


def test_it_does_not_matter_whether_results_are_kept():
    """B017"""
    for keep in (False, True):
        add, kept = jit(lambda a, b: a + b), []
        a, b = Tensor([1, 2, 3]), Tensor([4, 5, 6])
        for _ in range(5):
            result = add(a, b)
            if keep:
                kept.append(result)
            assert [5, 7, 9] == result.tolist()


# --- numbers -------------------------------------------------------------------------------------


def test_numbers_that_change_are_not_frozen():
    """B016, A24"""
    add, b = jit(lambda b, i: b + i), Tensor([0])
    for i in range(5):
        b = add(b, i)
    assert [10] == b.tolist()


def test_a_changed_number_compiles_nothing():
    """A24"""
    scaled, x = jit(lambda x, by: x * by), Tensor([1.0, 2.0])
    scaled(x, 1.5)
    before = GlobalCounters.programs_compiled + GlobalCounters.schedules_built
    assert [[n + 0.25, 2 * (n + 0.25)] for n in range(2, 9)] == calls(scaled, *[(x, n + 0.25) for n in range(2, 9)])
    assert before == GlobalCounters.programs_compiled + GlobalCounters.schedules_built


def test_numbers_of_a_family_are_captured_each_by_itself():
    scaled, x = jit(lambda x, by: x * by), Tensor([1.0])
    assert [[2.5], [3.5]] * 4 == calls(scaled, *[(x, 2.5), (x, 3.5)] * 4)
    assert captured(scaled) == 2


def test_zeros_of_different_sign_are_different_numbers():
    signed = jit(lambda x, zero: x * zero)
    found = [str(signed(Tensor([1.0]), zero).item()) for zero in (0.0, 0.0, 0.0, -0.0, -0.0, -0.0, 0.0)]
    assert ["0.0", "0.0", "0.0", "-0.0", "-0.0", "-0.0", "0.0"] == found


def test_a_number_may_decide_what_is_computed():
    chosen = jit(lambda x, n: x + 1 if n > 2 else x - 1)
    assert [[4], [4], [4], [6], [4]] == calls(chosen, *[(Tensor([5]), n) for n in (0, 0, 0, 3, 1)])


# --- outputs are not overwritten -------------------------------------------------------------------


def test_results_that_are_held_stay_as_they_are():
    """A24"""
    square = jit(lambda x: (x * x, x + 1))
    kept = [square(Tensor([n])) for n in range(8)]
    assert [([n * n], [n + 1]) for n in range(8)] == [(a.tolist(), b.tolist()) for a, b in kept]


def test_a_result_may_be_the_next_input():
    """B023"""
    half = 1 << 9
    shift = jit(lambda buffer, new: buffer[half:].cat(new))
    buffer = Tensor.zeros(2 * half, dtype="int32")
    for i in range(10):
        buffer = shift(buffer, Tensor.full((half,), 1 + i, dtype="int32"))
        values = buffer.tolist()
        assert [i] * half + [1 + i] * half == values


def test_memory_that_was_looked_at_without_a_copy_is_not_used_again():
    numpy = pytest.importorskip("numpy")
    more = jit(lambda x: x + 1)
    views = [numpy.from_dlpack(more(Tensor([n, n]))) for n in range(6)]
    assert [[n + 1, n + 1] for n in range(6)] == [view.tolist() for view in views]


def test_replays_need_no_more_and_no_more_memory():
    """B028"""
    more, x = jit(lambda x: (x + 1).exp()), Tensor([1.0, 2.0])
    for _ in range(5):
        more(x).tolist()
    gc.collect()
    before = len(gc.get_objects()), GlobalCounters.mem_used, GlobalCounters.live_nodes
    gc.disable()
    try:
        for _ in range(200):
            more(x).tolist()
        after = len(gc.get_objects()), GlobalCounters.mem_used, GlobalCounters.live_nodes
    finally:
        gc.enable()
    assert before[1:] == after[1:]
    assert after[0] - before[0] < 10


# --- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", [Tensor.item, Tensor.tolist, Tensor.numpy, bool, float, repr])
def test_looking_at_a_value_is_refused_with_the_line_and_a_remedy(look):
    """A24"""

    @jit
    def curious(x):
        return look(x + 1)

    for _ in range(2):
        with pytest.raises(CaptureError, match="curious is captured by jit") as caught:
            curious(Tensor([1.0]))
        assert "where(...)" in str(caught.value)
        assert "test_jit.py" in str(caught.value)
    assert Tensor([1.0]).item() == 1.0


def test_an_exception_leaves_nothing_half_done():
    """A24"""
    state, fail = Tensor([1]), [False]

    @jit
    def step(x):
        state.assign(state + x)
        if fail[0]:
            raise KeyError("stop")
        return state * 2

    assert [[4], [6]] == calls(step, *[(Tensor([1]),)] * 2)
    fail[0] = True
    with pytest.raises(KeyError):
        step(Tensor([1]))
    fail[0] = False
    assert [[10], [12], [14]] == calls(step, *[(Tensor([1]),)] * 3)
    assert [Tensor([1]).item()] == [1]


def test_something_that_cannot_be_called_is_refused():
    with pytest.raises(ValueError, match="a function is captured"):
        jit(3)


def test_wrong_arguments_are_python_errors():
    more = jit(lambda x: x + 1)
    with pytest.raises(TypeError, match="positional argument"):
        more()


def test_a_full_device_leaves_state_as_it_was_and_the_next_call_works():
    state = Tensor([0.0])

    @jit
    def step(x):
        state.assign(state + 1)
        return (x + 1).expand(100_000).contiguous() * 1

    for _ in range(3):
        step(Tensor([1.0]))
    allocator = Device["CPU"].allocator
    allocator.relieve()
    limit, allocator.limit = allocator.limit, allocator.in_use + 1000
    try:
        with pytest.raises(OutOfMemoryError) as caught:
            step(Tensor([1.0]))
    finally:
        allocator.limit = limit
    assert "test_jit.py" in str(caught.value)
    assert [3.0] == state.tolist()
    step(Tensor([1.0]))
    assert [4.0] == state.tolist()


# --- together ------------------------------------------------------------------------------------


def test_a_captured_function_may_call_another_one():
    """A24"""
    weight = Tensor([3.0])
    inner = jit(lambda x: x * weight)
    outer = jit(lambda x: inner(x) + inner(x + 1))
    for n in range(5):
        assert [6.0 * n + 3.0] == outer(Tensor([float(n)])).tolist()
    assert (captured(outer), captured(inner)) == (1, 0)
    weight.assign(weight + 1)
    assert [8.0 * 5 + 4.0] == outer(Tensor([5.0])).tolist()


def test_threads_may_call_one_function():
    """A24"""
    square, found = jit(lambda x: x * x), {}

    def work(n):
        found[n] = [square(Tensor([n * 10 + i])).item() for i in range(20)]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: [(n * 10 + i) ** 2 for i in range(20)] for n in range(4)} == found


@pytest.mark.parametrize("device", ["PYTHON", "CPU:1"])
def test_every_device_replays(device):
    """A24"""
    state = Tensor([1.0], device=device)

    @jit
    def step(x):
        state.assign(state + x.to(device).sum())
        return state * 2

    for n in range(1, 5):
        assert [2.0 * (1 + 3 * n)] == step(Tensor([1.0, 2.0])).tolist()
    assert captured(step) == 1


def test_a_call_and_a_replay_give_the_same_bits():
    """B026"""
    Tensor.manual_seed(0)
    weights = [Tensor.rand(4, 3, 3, 3), Tensor.rand(8, 4, 3, 3), Tensor.rand(8 * 16, 5)]

    @jit
    def network(x):
        x = x.conv2d(weights[0], padding=1).relu().max_pool2d(2)
        x = x.conv2d(weights[1], padding=1).relu().max_pool2d(2)
        return (x.reshape(x.shape[0], -1) @ weights[2]).softmax(-1)

    x = Tensor.rand(2, 3, 16, 16)
    first, *others = calls(network, *[(x,)] * 5)
    assert [first] * 4 == others


def test_importing_it_brings_neither_numpy_nor_llvmlite():
    code = "import sys; from lazulite import jit; print({'numpy', 'llvmlite'} & sys.modules.keys())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout == "set()\n"


def test_forgetting_frees_the_memory():
    more = jit(lambda x: (x + 1).sum() * x)
    calls(more, *[(Tensor([1, 2]),)] * 3)
    more.reset()
    assert captured(more) == 0
    assert [[14, 21]] * 3 == calls(more, *[(Tensor([2, 3], dtype=dtypes.int32),)] * 3)
