import io
import pickle
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.formats.opcodes import Builder, RefusedError, interpret
from support.checkpoints import Global, Persistent, Raw, pickled

keys = st.none() | st.booleans() | st.integers(-(1 << 63), 1 << 63) | st.text(max_size=5) | st.binary(max_size=5)
scalars = keys | st.floats(allow_nan=False) | st.integers(-(1 << 200), 1 << 200)
plain = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4)
        | st.tuples(inner, inner)
        | st.frozensets(keys, max_size=3)
        | st.sets(keys, max_size=3)
    ),
    max_leaves=20,
)


def run(data, table=None, persistent=None):
    return interpret(io.BytesIO(data), table or {}, persistent)


def reason(data, table=None):
    with pytest.raises(RefusedError) as caught:
        run(data, table)
    assert 0 <= caught.value.offset <= len(data)
    return caught.value.reason


@given(plain, st.sampled_from([4, 5]))
def test_plain_values_come_back_as_from_pickle(value, protocol):
    data = pickle.dumps(value, protocol)
    assert pickle.loads(data) == run(data) and type(value) is type(run(data))


@given(plain)
def test_old_protocols_are_read_too(value):
    """Sets and bytes are calls there, which the table has to allow."""
    table = {name: Builder(set) for name in ("__builtin__.set", "builtins.set")}
    table |= {name: Builder(frozenset) for name in ("__builtin__.frozenset", "builtins.frozenset")}
    table |= {name: Builder(bytes) for name in ("__builtin__.bytes", "builtins.bytes")}
    table["_codecs.encode"] = Builder(lambda text, encoding: text.encode(encoding))
    for protocol in (0, 1, 2, 3):
        assert value == run(pickle.dumps(value, protocol), table)


def test_an_object_that_holds_itself_is_built():
    loop = []
    loop.append(loop)
    found = run(pickle.dumps(loop))
    assert found[0] is found


def test_the_place_is_after_the_pickle():
    stream = io.BytesIO(pickle.dumps(1) + pickle.dumps([2]) + b"rest")
    assert [1, [2]] == [interpret(stream, {}), interpret(stream, {})] and b"rest" == stream.read()


def test_a_reference_is_resolved_by_the_caller_or_refused():
    data = pickled([Persistent("a"), 1])
    assert ["A", 1] == run(data, persistent=str.upper)
    assert "outside" in reason(data)
    assert ["A"] == run(b"(lPa\na.", persistent=str.upper)


@pytest.mark.parametrize(
    "opcodes, text",
    [
        (b"(S'ls'\nios\nsystem\n.", "INST"),
        (b"(cos\nsystem\nS'ls'\no.", "os.system"),
        (b"(S'f'\nS'ls'\no.", "OBJ"),
        (b"\x80\x02S'f'\n)\x81.", "NEWOBJ"),
        (b"\x80\x04S'f'\n)}\x92.", "NEWOBJ_EX"),
        (b"\x80\x02\x82\x01.", "EXT1"),
        (b"\x80\x02\x83\x01\x01.", "EXT2"),
        (b"\x80\x02\x84\x01\x01\x01\x01.", "EXT4"),
        (b"\x80\x05\x97.", "NEXT_BUFFER"),
        (b"\x80\x05N\x98.", "READONLY_BUFFER"),
        (b"\x80\x05\x96\x01\0\0\0\0\0\0\0x.", "BYTEARRAY8"),
    ],
)
def test_opcodes_that_make_objects_are_refused(opcodes, text):
    assert text in reason(opcodes)


@pytest.mark.parametrize(
    "opcodes",
    [
        b".",
        b"S'a\\_'\n(.",
        b"0.",
        b"a.",
        b"(a.",
        b"N",
        b"N\x85",
        b"}(Nu.",
        b"h\x05.",
        b"N(.",
        b"]}a",
        b"Na.",
        b"]NNs.",
        b"}Ne.",
        b"u.",
        b"t.",
        b"\x86.",
        b"NR.",
        b")R.",
        b"Nb.",
        b"]Nb.",
        b"\x8c\xffab.",
        b"X\xff\xff\xff\xff.",
        b"\x8d" + b"\xff" * 8,
        b"B\xff\xff\xff\x7f.",
        b"\x8b\xff\xff\xff\x7f.",
        b"\x8e" + b"\xff" * 7 + b"\x7f.",
        b"Ix\n.",
        b"I" + b"9" * 9999 + b"\n.",
        b"S'a\n.",
        b"V\\u12\n.",
        b"\x80\xff.",
        b"\x93.",
        b"NN\x93.",
        b"S'a'\nN\x93.",
        b"\x94.",
        b"1.",
        b"(N\x90.",
        b"}((Ns.",
        b"\x00",
        b"(Nd.",
        b"](Q.",
        b"\x95\xff\xff\xff\xff\xff\xff\xff\xff.",
    ],
)
def test_what_no_pickler_writes_is_refused(opcodes):
    reason(opcodes)


def test_keys_that_cost_much_to_hash_are_refused():
    """Hashing walks nested tuples: deep ones overflow the stack, wide ones repeat work without end."""
    deep = b"(" * 100_000 + b"N" + b"t" * 100_000
    assert "key" in reason(b"}" + deep + b"Ns.")
    wide = b"(" + b"N" * 60 + b"tq\0"
    for level in range(1, 12):
        wide += b"0(" + bytes([ord("h"), level - 1]) * 60 + b"tq" + bytes([level])
    assert "more than" in reason(b"}" + wide + b"Ns.")
    assert "bits" in reason(pickled({1 << 70: 1}))
    assert "list" in reason(b"}]Ns.") and "dict" in reason(b"\x80\x04\x8f(}\x90.")
    assert {(1, (2, "a")): 3} == run(pickled({(1, (2, "a")): 3}))


def test_many_marks_are_no_more_work_than_other_opcodes():
    """A search for the last mark through all of the stack would take a day."""
    assert [] == run(b"(" * 300_000 + b"1" * 300_000 + b"].")
    assert "fewer" in reason(b"](" + b"a.") and "fewer" in reason(b"N(0(" + b"\x85.")


def test_deep_values_that_are_no_keys_are_read():
    found, depth = run(b"(" * 50_000 + b"t" * 50_000 + b"."), 0
    while found:
        found, depth = found[0], depth + 1
    assert 49_999 == depth


def test_functions_are_given_no_more_than_the_pickle_holds():
    """A text of a megabyte that is encoded ten thousand times would fill the memory."""
    table = {"_codecs.encode": Builder(lambda text: text.encode())}
    encode = Global("_codecs", "encode")
    assert [b"abc", b"abc"] == run(pickled([encode("abc"), encode("abc")]), table)
    long = b"X" + struct.pack("<I", 1 << 20) + b"x" * (1 << 20) + b"q\0"
    again = b"c_codecs\nencode\nh\0\x85R"
    assert "given more" in reason(b"](" + long + again * 10_000 + b"e.", table)


def test_what_is_not_in_the_table_is_refused_by_name():
    assert "'os.system'" in reason(pickled(Global("os", "system")("true")))
    assert "'os.system'" in reason(b"\x8c\x02os\x8c\x06system\x93.")
    assert "'a.b.c'" in reason(b"ca\nb.c\n.", {"a.b": 1})


def test_only_builders_are_called():
    table = {"torch.float16": "a dtype", "f": Builder(len)}
    assert "calls a value of type str" in reason(pickled(Global("torch", "float16")()), table)
    assert "calls a value of type list" in reason(pickled(Raw(b"])R")), table)
    assert "calls" in reason(pickled(Raw(b"cf\n\n]R")), {"f.": Builder(len)})


def test_the_state_of_a_dictionary_is_left_out_and_any_other_refused():
    assert {"a": 1} == run(b"}S'a'\nI1\ns}S'x'\nI2\nsb.")
    assert "attributes of list" in reason(b"]}b.")


@given(plain, st.data())
def test_damaged_pickles_are_read_or_refused(value, data):
    whole = pickle.dumps(value, data.draw(st.sampled_from([0, 2, 4])))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole)))
        whole = whole[:at] + data.draw(st.binary(max_size=3)) + whole[at + data.draw(st.integers(0, 3)) :]
    try:
        run(whole)
    except RefusedError as refused:
        assert refused.reason
