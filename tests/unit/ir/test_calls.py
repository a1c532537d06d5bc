"""What a CALL reads and writes follows from its body."""

from __future__ import annotations

import pytest

from lazulite.base.errors import EffectError, GradientError
from lazulite.ir import ops
from lazulite.ir.calls import ProgramInfo, Run, arguments_of, call_access, gradient_of
from lazulite.ir.dtype import dtypes
from lazulite.ir.parse import parse
from lazulite.ir.uop import UOp

OUT, X, OTHER = [UOp(ops.PARAM, dtypes.float32, (), (slot, (4,), "CPU")) for slot in range(3)]
A, B, C = [UOp(ops.BUFFER, dtypes.float32, (), (number, 0, (4,), "CPU")) for number in range(3)]
DOUBLE = parse("""
    kernel
    param p0 float32[4]
    param p1 float32[4]
    loop r0 in 0..4
    p0[r0] = p1[r0] * 2.0
""")


def test_arguments_that_are_not_touched_are_in_neither_list():
    """A2."""
    assert ((B,), (A,)) == UOp.sink(OUT.store(X + 1)).call(A, B, C).call_access()


def test_what_is_read_and_written_is_in_both_lists():
    """A2."""
    assert ((A, B), (A,)) == UOp.sink(OUT.store(OUT + X)).call(A, B).call_access()


def test_a_body_that_only_names_a_parameter_touches_nothing():
    """A2."""
    assert ((), ()) == UOp.sink(OUT).call(A).call_access()


def test_a_store_into_a_view_writes_the_argument_and_reads_none_of_it():
    """A2."""
    part = UOp(ops.SHRINK, OUT.dtype, (OUT,), ((0, 2),))

    assert ((), (A,)) == UOp.sink(part.store(0)).call(A).call_access()


def test_loads_and_stores_of_a_kernel_count():
    """A2."""
    assert ((C,), (A,)) == DOUBLE.call(A, C).call_access()


def test_calls_in_a_list_have_parameters_of_their_own():
    """A2."""
    inner = UOp.sink(OUT.store(X + 1)).call(OTHER, OUT)

    assert ((A,), (C,)) == UOp(ops.LINEAR, dtypes.void, (inner,)).call(A, B, C).call_access()


def test_a_copy_reads_its_source_and_writes_its_destination():
    """A2."""
    assert ((B,), (A,)) == UOp(ops.COPY, X.dtype, (X,), "CPU").call(A, B).call_access()


def test_a_program_tells_its_slots():
    """A2."""
    program = UOp(ops.PROGRAM, dtypes.void, (), ProgramInfo("p", ins=(1,), outs=(0,)))

    assert ((B,), (A,)) == program.call(A, B).call_access()


def test_a_program_without_slots_is_refused():
    """A2."""
    with pytest.raises(EffectError, match="cannot compute accesses"):
        UOp(ops.PROGRAM, dtypes.void).call(A).call_access()


@pytest.mark.parametrize("body", [DOUBLE, UOp(ops.PROGRAM, dtypes.void, (), ProgramInfo("p", (0,), (3,)))])
def test_a_slot_without_an_argument_is_refused(body):
    """A2."""
    with pytest.raises(EffectError, match="invalid CALL access slot"):
        body.call(A).call_access()


def test_a_program_does_not_get_one_buffer_to_read_and_to_write():
    """A2."""
    program = UOp(ops.PROGRAM, dtypes.void, (), ProgramInfo("p", ins=(1,), outs=(0,)))

    with pytest.raises(EffectError, match="aliased opaque"):
        program.call(A, UOp(ops.FLIP, A.dtype, (A,), (0,))).call_access()


def test_only_calls_have_accesses_and_only_bodies_are_called():
    with pytest.raises(EffectError, match="CALL"):
        call_access(A)
    with pytest.raises(EffectError, match="body"):
        A.call(B)


# --- the traced gradient -----------------------------------------------------------------------


def test_the_gradient_is_traced_when_the_call_is_built():
    """A3."""
    call = DOUBLE.call(A, B, grad_fxn=lambda upstream, call: (None, upstream * 2))
    gradient = gradient_of(call)

    assert (A, B) == arguments_of(call)
    assert gradient is not None
    assert (1,) == gradient.arg
    assert all(not callable(node.arg) for node in gradient.src)


def test_the_gradient_may_use_the_result():
    """A3: slots from n on stand for the arguments after the call."""
    call = DOUBLE.call(A, B, grad_fxn=lambda upstream, call: (None, upstream * call.src[1].after(call)))
    gradient = gradient_of(call)

    assert gradient is not None
    assert {2, 4} == {param.arg[0] for param in gradient.src[0].src}


def test_a_gradient_for_each_argument_is_asked_for():
    with pytest.raises(GradientError, match="grad_fxn"):
        DOUBLE.call(A, B, grad_fxn=lambda upstream, call: upstream)


# --- the data of a LAUNCH ------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["kernel\n'p' # x", '"\\'])
def test_a_run_comes_back_from_its_text(kernel):
    run = Run(kernel, (0, 2), (0,), (1,), (-1, 1), 1, "tensor\nreturn 1", (0,))
    text = run.to_text()

    assert run == Run.from_text(text)
    assert not {"\n", "#", "'"} & set(text[1:-1])
