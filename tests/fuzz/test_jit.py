"""Random functions with state, called again and again: captured or not, every value and all state is the same.

A program has steps of a few kinds over what is there: arguments, state in a closure, results so far.  It is
run in two worlds with equal beginnings, plainly in one and under `jit` in the other, while between the
calls things happen that a capture might miss: other contents, another tensor in the place of one, a
pending write, a view that is looked at later.
"""

from hypothesis import given, settings
from hypothesis import strategies as st

from lazulite import Tensor, jit

SHAPE = (2, 3)
STEPS = st.sampled_from(
    [
        "add",
        "scale",
        "number",
        "rows",
        "transposed",
        "sum",
        "write",
        "write row",
        "grow",
        "draw",
        "realize",
        "keep",
        "swap",
    ]
)
EVENTS = ["new contents", "new tensor", "pending write", "held view", "feed back", "same twice"]
PROGRAM = st.lists(st.tuples(STEPS, st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6)
CALLS = st.lists(
    st.tuples(st.sampled_from(["nothing"] * 12 + EVENTS), st.sampled_from([1] * 9 + [2.5])), min_size=5, max_size=10
)


def tensor(start):
    return Tensor([[float(start + 3 * row + column) for column in range(3)] for row in range(2)])


class Model:
    """State, and the program as a function of it."""

    def __init__(self, program):
        self.state = [tensor(1), tensor(5)]
        self.kept = {"last": tensor(0)}
        self.program = program

    def body(self, x, pair, number):
        values = [x, pair["left"], pair["right"], *self.state]
        for kind, first, second in self.program:
            a, b = values[first % len(values)], values[second % len(values)]
            values.append(self.step(kind, a, b, number, second))
        return values[-1], {"all": [value for value in values[5:] if value is not x]}

    def step(self, kind, a, b, number, place):
        state = self.state[place % 2]
        match kind:
            case "add":
                return a + b
            case "scale":
                return a * 0.5
            case "number":
                return a * number + number
            case "rows":
                return a[::-1] + b[0:1]
            case "transposed":
                return (a.T @ b).sum() + a
            case "sum":
                return a - b.sum(0, keepdim=True)
            case "write":
                return state.assign(a * 0.25)
            case "write row":
                state[place % 2] = b[0]
                return state + a
            case "grow":
                state += 1
                return state * 1
            case "draw":
                return a + Tensor.rand(*SHAPE)
            case "realize":
                return (a - b).realize()
            case "write argument":
                return a.assign(b * 0.5) if a is not b else a + 0
            case "keep":
                before, self.kept["last"] = self.kept["last"], a + 1
                return before + b
            case _:
                self.state[0], self.state[1] = self.state[1], self.state[0]
                return self.state[0] + 0


class World:
    """A model, its function in one form or the other, and everything that was seen of it."""

    def __init__(self, program, wrap):
        Tensor.manual_seed(3)
        self.model = Model(program)
        self.function = wrap(self.model.body)
        self.held = []

    def call(self, number, event, x, y):
        state = self.model.state
        last = self.held[-1] if self.held else y
        if event == "new contents":
            state[0].assign(state[0] * 0.5 + 1).realize()
        elif event == "new tensor":
            state[1] = tensor(number)
        elif event == "pending write":
            state[0] += 2
        elif event == "held view":
            self.held.append(state[0][0:1] * 1)
        elif event == "feed back" and last.shape == SHAPE:
            x = last
        elif event == "same twice":
            y = x
        result, rest = self.function(x, {"left": y, "right": x if event == "same twice" else y + 1}, number)
        self.held += [result, *rest["all"]]

    def values(self):
        return [t.tolist() for t in [*self.held, *self.model.state, self.model.kept["last"]]]


@settings(deadline=None, max_examples=40)
@given(PROGRAM, CALLS)
def test_a_captured_function_is_the_function(program, calls):
    """A24"""
    plain, captured = World(program, lambda function: function), World(program, jit)
    found = []
    for world in (plain, captured):
        Tensor.manual_seed(7)
        for position, (event, number) in enumerate(calls):
            world.call(number, event, tensor(position), tensor(10 - position))
        found.append(world.values())
    assert found[0] == found[1]
