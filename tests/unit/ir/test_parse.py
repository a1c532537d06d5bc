import pytest

from lazulite.base.errors import FormatError
from lazulite.ir import ops
from lazulite.ir.dtype import dtypes
from lazulite.ir.parse import parse, parse_expression
from lazulite.ir.uop import UOp, index


def scalar(slot, dtype=dtypes.int32, low=None, high=None):
    return UOp(ops.SCALAR, dtype, (), (slot, low, high))


# --- expressions with free names, as in the examples of rules -----------------------------------


def test_free_names_are_scalars_numbered_by_first_visit():
    assert (scalar(0) + 1) + scalar(1) is parse_expression("(x + 1) + y", dtypes.int32)


def test_two_sides_of_a_rule_share_their_names():
    names = {}
    before, after = (parse_expression(side, dtypes.int32, names) for side in "x + y -> y + x".split("->"))
    assert before.src == after.src[::-1]
    assert ["x", "y"] == list(names)


def test_given_names_are_used_and_new_ones_get_free_slots():
    r = UOp(ops.RANGE, dtypes.index, (index(8),), ((0,), "loop"))
    names = {"r0": r, "n": scalar(4, dtypes.index)}
    assert (r * 32 + scalar(5, dtypes.index)) // 32 is parse_expression("(r0*32 + k) // 32", dtypes.index, names)


def test_a_name_may_carry_bounds_and_a_type_where_it_first_stands():
    node = parse_expression("(x:0..15 + 1) * x", dtypes.index)
    assert scalar(0, dtypes.index, 0, 15) is node.src[1]
    assert scalar(0, dtypes.int8, -3, 4) is parse_expression("x:int8:-3..4", dtypes.index)


def test_a_name_takes_the_type_that_its_place_asks_for():
    node = parse_expression("where(g, x, y:float32)", dtypes.int32)
    assert [dtypes.bool, dtypes.float32, dtypes.float32] == [s.dtype for s in node.src]
    assert dtypes.int32 is parse_expression("x < 3", dtypes.int32).src[0].dtype


def test_greater_and_differences_of_indices_are_written_as_usual():
    x, y = scalar(0, dtypes.index), scalar(1, dtypes.index)
    names = {"x": x, "y": y}
    assert (y < x) is parse_expression("x > y", dtypes.index, names)
    assert (y <= x) is parse_expression("x >= y", dtypes.index, names)
    assert x + y * -1 is parse_expression("x - y", dtypes.index, names)
    assert x + -3 is parse_expression("x - 3", dtypes.index, names)
    assert x * -1 is parse_expression("-x", dtypes.index, names)


def test_literals_have_the_default_type():
    assert UOp.const(dtypes.int32, 3) * 4 is parse_expression("3 * 4", dtypes.int32)
    assert UOp.const(dtypes.bool, True) is parse_expression("true", dtypes.int32)
    assert UOp.const(dtypes.float16, 1.0) is parse_expression("1", dtypes.float16)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x + ", "expected a value, got 'the end of the line'"),
        ("x + y:int8 * z:int16", "operands must have one type, got int8 and int16"),
        ("x < y < z", "comparisons do not chain"),
        ("(x + 1", "expected ')'"),
        ("x $ y", "unexpected character '$'"),
        ("x y", "unexpected 'y'"),
        ("1.5 + x", "1.5 is no value of int32"),
        ("foo(x)", "there is no foo with 1 operands"),
        ("max(x)", "there is no max with 1 operands"),
        ("x.foo()", "there is no method 'foo'"),
        ("x.cast(int7)", "no type is called 'int7'"),
        ("sqrt(x)", "sqrt does not take int32"),
        ("x / y", "div does not take int32"),
        ("x:1..", "expected an integer"),
        ("nan(0x7fc00001)", "a nan with its bits needs its type"),
        ("(" * 100 + "x" + ")" * 100, "nested too deeply"),
        ("-" * 100 + "x", "nested too deeply"),
    ],
)
def test_a_fault_in_an_expression_is_named(text, message):
    with pytest.raises(FormatError) as caught:
        parse_expression(text, dtypes.int32)
    assert message in caught.value.message


def test_a_long_sum_needs_no_stack():
    node = parse_expression(" + ".join(["x"] * 5000), dtypes.int32)
    assert node.op is ops.ADD


# --- programs ----------------------------------------------------------------------------------


def test_names_of_one_s_own_are_numbered_by_their_lines():
    kernel = parse("""
        # doubles every element
        kernel
        param out float32[8]
        param a float32[8]

        loop i in 0..8     # all of them
        out[i] = a[i] * 2
    """)
    (store,) = kernel.src
    assert (0, (8,), "") == store.src[0].arg
    assert (1, (8,), "") == store.src[2].src[0].src[0].arg
    assert ((0,), "loop") == store.src[1].arg


def test_a_number_in_a_name_is_its_slot_or_order():
    kernel = parse("kernel\nparam p3 float32[8]\nloop r5 in 0..8\np3[r5] = 0.0")
    assert 3 == kernel.src[0].src[0].arg[0]
    assert ((5,), "loop") == kernel.src[0].src[1].arg


def test_a_program_without_its_language_is_read_as_well():
    assert parse("kernel\nparam p float32[1]\np[0] = 1") is parse("param p float32[1]\np[0] = 1")


def test_memory_lies_on_the_default_device_where_none_is_named():
    assert "CPU" == parse("tensor\nparam p0 float32[2]\nreturn p0").arg[2]
    assert "" == parse("kernel\nparam p0 float32[2]\np0[0] = 1").src[0].src[0].arg[2]
    assert "CUDA:1" == parse('tensor\nparam p0 float32[2] on "CUDA:1"\nreturn p0').arg[2]


@pytest.mark.parametrize(
    ("text", "message", "field"),
    [
        ("return x", "nothing is called 'x' here", "line 1"),
        ("return 3", "the type of 3 is not known here", "line 1"),
        ("param p0 float31[3]", "expected a name and a type", "line 1"),
        ("param p0 float32", "expected: param NAME TYPE[SIZES]", "line 1"),
        ("scalar n0 int32 5", "expected: scalar NAME TYPE LOW..HIGH", "line 1"),
        ("scratch s0 int32[4]", "expected: scratch NAME TYPE[SIZE] align BYTES", "line 1"),
        ("loop r0 in 1..5", "expected: loop NAME in 0..EXTENT", "line 1"),
        ("state c0 = 1:int32", "a state belongs to a loop", "line 1"),
        ("scalar n0 int32\n  return n0", "only the lines of a loop are indented", "line 2"),
        ("loop r0 in 0..3\n    next c0 = 1:int32", "the innermost loop has no state 'c0'", "line 2"),
        ("loop r0 in 0..3\n    state c0 = 1:int32\nreturn c0", "the loop ends without a line 'next c0 = ..'", "line 3"),
        ("param p int32[3]\nloop r in 0..3\n    p[r] = 1\n  p[0] = 1", "the indentation fits no open loop", "line 4"),
        ("scalar n0 int32\nn0 + 1 = 3", "expected '='", "line 2"),
        ("scalar n0 int32\n(n0) = 3", "the left side of a store must be memory[index]", "line 2"),
    ],
)
def test_a_fault_in_a_program_names_its_line(text, message, field):
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert message in caught.value.message
    assert field in caught.value.field
