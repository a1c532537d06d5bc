"""What a captured function leaves behind: state, attributes, results; as without capture."""

import sys

import pytest

from lazulite import Context, Tensor, jit, nn
from support.capture import calls, captured


def test_state_in_a_closure_advances_with_every_call():
    """A24"""
    count = Tensor([0])

    @jit
    def step(x):
        before = count + 0
        count.assign(count + x)
        return before, count * 10

    for n in range(6):
        before, after = step(Tensor([2]))
        assert ([2 * n], [20 * (n + 1)], [2 * (n + 1)]) == (before.tolist(), after.tolist(), count.tolist())
    assert captured(step) == 1


def test_an_argument_may_be_written():
    """A24"""

    @jit
    def write(cache, value, at):
        cache[at : at + 1] = value
        return cache.sum()

    cache, other = Tensor([0.0] * 4), Tensor([9.0] * 4)
    assert [1.0, 1.0, 1.0] == calls(write, *[(cache, Tensor([1.0]), 1)] * 3)
    assert [30.0] * 3 == calls(write, *[(other, Tensor([3.0]), 1)] * 3)
    assert ([0.0, 1.0, 0.0, 0.0], [9.0, 3.0, 9.0, 9.0]) == (cache.tolist(), other.tolist())


def test_state_that_nobody_reads_is_written_as_well():
    mean = Tensor([0.0])

    @jit
    def observe(x):
        mean.assign(mean * 0.5 + x)

    for _ in range(4):
        assert observe(Tensor([8.0])) is None
    assert [15.0] == mean.tolist()


def test_what_was_derived_before_a_write_keeps_its_value():
    state = Tensor([1, 2])

    @jit
    def double():
        state.assign(state * 2)

    for _ in range(3):
        double()
    before, view = state + 0, state[0:1]
    copy = Tensor(state)
    double()
    assert ([8, 16], [8], [8, 16], [16, 32]) == (before.tolist(), view.tolist(), copy.tolist(), state.tolist())


def test_a_pending_write_of_the_state_comes_first():
    state = Tensor([1])
    step = jit(lambda: state.assign(state + 1) * 1)
    assert [[2], [3], [4]] == [step().tolist() for _ in range(3)]
    state.assign(state * 10)
    assert [[41], [42]] == [step().tolist() for _ in range(2)]


def test_a_view_that_is_written_writes_what_it_is_a_view_of():
    @jit
    def clear(part):
        part.assign(Tensor.zeros_like(part))

    base = Tensor([1, 2, 3, 4])
    for n in range(4):
        clear(base[n : n + 1])
        assert [0] * (n + 1) + [2, 3, 4][n:] == base.tolist()
    assert "view" in clear.reason


def test_a_result_that_is_a_view_of_an_input_writes_it():
    head = jit(lambda x: x[0:1])
    for n in range(4):
        x = Tensor([n, n])
        head(x).assign(Tensor([7]))
        assert [7, n] == x.tolist()


def test_a_tensor_made_in_the_function_may_be_written_there():
    @jit
    def padded(x):
        out = Tensor.zeros(4)
        out[1:3] = x
        ones = Tensor([1.0, 1.0, 1.0, 1.0])
        ones[0] = 5.0
        return out, ones

    for n in range(5):
        out, ones = padded(Tensor([float(n), 1.0]))
        assert ([0.0, n, 1.0, 0.0], [5.0, 1.0, 1.0, 1.0]) == (out.tolist(), ones.tolist())
        out.assign(out + 100)
        ones.assign(ones + 100)
    assert captured(padded) == 1


def test_constants_of_the_function_may_be_returned():
    table = jit(lambda: (Tensor([1, 2]), Tensor.ones(2), Tensor(3)))
    for _ in range(5):
        a, b, c = table()
        assert ([1, 2], [1.0, 1.0], 3) == (a.tolist(), b.tolist(), c.item())
        a.assign(a + 5)
        b.assign(b + 5)


SCALE = Tensor([2.0])


@jit
def scaled_by_a_global(x):
    return x * SCALE


def test_another_tensor_in_a_global_or_attribute_is_seen(monkeypatch):
    """A24"""
    assert [[6.0]] * 3 == calls(scaled_by_a_global, *[(Tensor([3.0]),)] * 3)
    monkeypatch.setattr(sys.modules[__name__], "SCALE", Tensor([5.0]))
    assert [[15.0]] * 3 == calls(scaled_by_a_global, *[(Tensor([3.0]),)] * 3)
    layer = nn.Linear(2, 2)
    forward = jit(lambda x: layer(x) * 1)
    x = Tensor([[1.0, 2.0]])
    for _ in range(3):
        assert layer(x).tolist() == forward(x).tolist()
    layer.weight = Tensor.ones(2, 2)
    layer.bias.assign(layer.bias + 1)
    assert [layer(x).tolist()] * 3 == calls(forward, *[(x,)] * 3)


def test_an_object_with_tensors_may_be_an_argument():
    """A24"""
    forward = jit(lambda model, x: model(x).relu())
    models, x = [nn.Linear(3, 2) for _ in range(3)], Tensor([[1.0, -2.0, 3.0]])
    for _ in range(3):
        for model in models:
            assert model(x).relu().tolist() == forward(model, x).tolist()
    assert captured(forward) == 1


class Counter:
    """An object with state of its own."""

    def __init__(self, start):
        self.total = Tensor([start])
        self.history = []
        self.steps = 0

    @jit
    def add(self, x):
        self.total = self.total + x
        return self.total * 1

    @jit
    def count(self, x):
        self.steps += 1
        return x + self.steps

    @jit
    def remember(self, x):
        self.history.append(x + 1)


def test_methods_are_captured_and_attributes_are_set():
    """A24"""
    first, second = Counter(0), Counter(100)
    kept = []
    for n in range(5):
        assert ([n + 1], [100 + 2 * (n + 1)]) == (first.add(Tensor([1])).tolist(), second.add(Tensor([2])).tolist())
        kept.append(first.total)
    assert [[1], [2], [3], [4], [5]] == [t.tolist() for t in kept]


def test_a_function_that_changes_numbers_or_lists_runs_every_time():
    """A24"""
    counter = Counter(0)
    assert [[11], [12], [13], [14]] == [counter.count(Tensor([10])).tolist() for _ in range(4)]
    assert Counter.count.reason == "it changes Counter.steps"
    for n in range(4):
        counter.remember(Tensor([n]))
    assert [[1], [2], [3], [4]] == [t.tolist() for t in counter.history]


def test_what_differs_from_call_to_call_without_a_visible_cause_is_not_frozen():
    numbers = iter(range(100))
    hidden = jit(lambda x: x + next(numbers) + 2.5)
    assert [[2.5], [3.5], [4.5], [5.5], [6.5]] == calls(hidden, *[(Tensor([0.0]),)] * 5)
    data = jit(lambda x: x + Tensor([next(numbers) + 0.5]))
    assert [[5.5], [6.5], [7.5], [8.5]] == calls(data, *[(Tensor([0.0]),)] * 4)


def test_arrays_that_may_change_are_not_frozen():
    numpy = pytest.importorskip("numpy")
    array = numpy.array([1.0], "float32")
    inside, outside = jit(lambda x: x + Tensor(array)), jit(lambda array: Tensor(array) * 2)
    for n in range(5):
        array[0] = n // 3
        assert ([n // 3 + 1], [2 * (n // 3)]) == (inside(Tensor([1.0])).tolist(), outside(array).tolist())


def test_a_tensor_that_stands_for_another_one_is_seen():
    state = Tensor([1])
    shown = jit(lambda: state * 2)
    assert [[2]] * 3 == [shown().tolist() for _ in range(3)]
    state.replace(Tensor([4]))
    assert [[8]] * 3 == [shown().tolist() for _ in range(3)]

    @jit
    def grow():
        state.replace(state.cat(state) if state.shape[0] < 2 else state + 1)
        return state

    assert [[4, 4], [5, 5], [6, 6], [7, 7], [8, 8]] == [grow().tolist() for _ in range(5)]
    assert [8, 8] == state.tolist()


def test_tensors_that_the_function_was_not_seen_to_reach_are_followed():
    class Closed:
        """Keeps a tensor in a generator, where nobody looks."""

        def __init__(self, tensor):
            self.source = self.always(tensor)

        @staticmethod
        def always(tensor):
            while True:
                yield tensor

    weight = Tensor([2.0]).realize()
    closed = Closed(weight)
    scaled = jit(lambda x: x * next(closed.source))
    assert [[6.0]] * 3 == calls(scaled, *[(Tensor([3.0]),)] * 3)
    weight.assign(weight + 1)
    assert [[9.0]] * 3 == calls(scaled, *[(Tensor([3.0]),)] * 3)


def test_settings_select_a_variant():
    dropped = jit(lambda x: x.dropout(0.5))
    x = Tensor.ones(64)
    for _ in range(3):
        assert [1.0] * 64 == dropped(x).tolist()
        with Tensor.train():
            assert {0.0, 2.0} == set(dropped(x).tolist())


def test_every_kernel_is_reported_when_somebody_watches(capsys):
    more = jit(lambda x: x + 1)
    calls(more, *[(Tensor([1]),)] * 3)
    with Context(DEBUG=2):
        assert [[2]] == calls(more, (Tensor([1]),))
    assert "test_aftermath.py" in capsys.readouterr().err
