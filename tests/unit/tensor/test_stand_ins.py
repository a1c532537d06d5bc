"""A stand-in has the value of its argument and leaves no trace in a result."""

from __future__ import annotations

from lazulite import Tensor
from lazulite.engine.handles import history
from lazulite.ir.uop import toposort
from lazulite.tensor.stand_ins import Call, Variables, replaced, unfolded


def test_a_result_is_over_the_arguments() -> None:
    x = Tensor([1.0, 2.0])
    call = Call("test", lambda x: (x * 2).sum(), [x], {}, [0])

    assert (x * 2).sum().uop is call.value.uop
    assert call.variables.nodes[0] in toposort(call.graphs[0])


def test_what_is_in_memory_is_written_as_it_was_computed() -> None:
    call = Call("test", lambda x: (x * 2).realize() * 3, [Tensor([1.0, 2.0])], {}, [0])

    assert call.variables.nodes[0] in toposort(call.graphs[0])
    assert [n for n in toposort(call.value.uop) if history(n) is not None] == []
    assert [6.0, 12.0] == call.value.tolist()


def test_a_replaced_node_keeps_its_line() -> None:
    x = Tensor([1.0])
    y = x + 1
    (new,) = replaced([y.uop], {x.uop: Tensor([2.0]).uop})

    assert new is not y.uop and new.origin is y.uop.origin
    assert [y.uop] == unfolded([y.uop])


def test_stand_ins_of_one_value_are_different() -> None:
    variables, x = Variables(), Tensor([1.0])
    first, second = [variables.stand_in(x, 0) for _ in range(2)]

    assert first.uop is not second.uop
    assert variables.released([first.uop, second.uop]) == [x.uop, x.uop]
