import importlib
import os
import struct
import subprocess
import sys

import pytest

from contract.format import refusal
from lazulite import FormatError, GlobalCounters, Tensor, dtypes
from lazulite.formats import torch
from support.checkpoints import Call, Global, Persistent, Raw, pickled
from support.model_files import archive, checkpoint

REBUILD = Global("torch._utils", "_rebuild_tensor_v2")
FLOATS = struct.pack("<6f", *range(6))


def storage(key="0", count=6, kind="FloatStorage"):
    return Persistent(("storage", Global("torch", kind), key, "cpu", count))


def tensor(offset, shape, strides, held=None):
    return REBUILD(held or storage(), offset, shape, strides, False, {})


def refused(value, tmp_path, storages=None):
    path = tmp_path / "model.pt"
    path.write_bytes(checkpoint(pickled(value), {"0": FLOATS} if storages is None else storages))
    error = refusal(torch.read, path)
    assert error is not None, "it was read"
    return error


def read(value, tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(checkpoint(pickled(value), {"0": FLOATS}))
    return torch.read(path)


# --- gadgets -----------------------------------------------------------------------------------------


class Reduced:
    """Something that pickles as a call."""

    def __init__(self, function, *arguments):
        self.parts = function, arguments


def gadgets(canary):
    """Pickles that make the file `canary` when a pickle machine runs them."""
    command = f"touch {canary}"
    write = f"open({str(canary)!r}, 'w').close()"
    yield "system", Reduced(os.system, command)
    yield "posix", Call(Global("posix", "system"), (command,))
    yield "popen", Reduced(subprocess.Popen, ["touch", str(canary)])
    yield "eval", Reduced(eval, write)
    yield "exec", Reduced(exec, write)
    yield "open", Reduced(open, str(canary), "w")
    yield "import", Reduced(importlib.import_module, "antigravity")
    yield "dunder import", Call(Global("builtins", "__import__"), ("os",))
    walk = Call(Global("builtins", "getattr"), (Global("torch", "serialization"), "os"))
    yield "attribute walk", Call(Call(Global("builtins", "getattr"), (walk, "system")), (command,))
    yield "dotted walk", Call(Global("torch", "serialization.os.system"), (command,))
    yield "nested reduce", {"weights": [(Reduced(os.system, command),)]}
    yield "as a key", {Reduced(os.system, command): 1}
    yield "state", Call(Global("collections", "OrderedDict"), (), {"a": Reduced(os.system, command)})
    yield "set state", Call(REBUILD, (storage(), 0, (1,), (1,), False, {}), {"__setstate__": Global("os", "system")})
    yield "memo", Raw(b"cos\nsystem\nq\0" + b"0h\0(S'" + command.encode() + b"'\ntR")
    yield (
        "memo over a permitted one",
        Raw(b"ccollections\nOrderedDict\nq\x010cos\nsystem\nq\x010h\x01(S'" + command.encode() + b"'\ntR"),
    )
    yield "duplicated", Raw(b"cos\nsystem\n20(S'" + command.encode() + b"'\ntR")
    yield "inst", Raw(b"(S'" + command.encode() + b"'\nios\nsystem\n")
    yield "obj", Raw(b"(cos\nsystem\nS'" + command.encode() + b"'\no")
    yield "newobj", Raw(b"csubprocess\nPopen\n(](S'touch'\nS'" + str(canary).encode() + b"'\net\x81")
    yield "extension", Raw(b"\x82\x01")
    yield "stack global", Raw(b"\x8c\x02os\x8c\x06system\x93(S'" + command.encode() + b"'\ntR")
    yield "joined name", Raw(b"\x8c\x00\x8c\x09os.system\x93(S'" + command.encode() + b"'\ntR")
    yield "permitted package", Call(Global("torch", "hub._exec"), (write,))
    yield "helper of torch", Call(Global("torch.testing._internal.common_utils", "run_tests"), (write,))
    yield "load inside", Call(Global("torch", "load"), (str(canary),))
    yield "storage from a file", Call(Global("torch", "FloatStorage.from_file"), (str(canary), True, 4))
    yield "helper of numpy", Call(Global("numpy.testing._private.utils", "runstring"), (write, {}))
    yield "helper of collections", Call(Global("collections", "_sys.modules.__getitem__"), ("os",))
    yield "codecs", Call(Global("_codecs", "lookup"), ("rot13",))
    yield "timeit", Call(Global("timeit", "timeit"), (write,))
    yield "pickle in a pickle", Call(Global("pickle", "loads"), (pickled(Global("os", "system")(command)),))
    yield "hooks", Call(REBUILD, (storage(), 0, (1,), (1,), False, Reduced(os.system, command)))
    yield "a reference", Persistent(Reduced(os.system, command))


@pytest.mark.parametrize("form", ["archive", "row of pickles"])
def test_gadgets_are_refused_and_run_nothing(tmp_path, form):
    """B125: only tensors and plain containers are made; every other name is refused, and nothing is run."""
    canary, path = tmp_path / "canary", tmp_path / "model.pt"
    imported = set(sys.modules)
    for name, value in gadgets(canary):
        data = pickled(as_opcodes(value))
        path.write_bytes(checkpoint(data, {"0": FLOATS}) if form == "archive" else legacy(data))
        error = refusal(torch.read, path)
        assert error is not None, f"{name} was read"
        assert not canary.exists(), f"{name} ran"
    assert "antigravity" not in set(sys.modules) - imported


def as_opcodes(value):
    """The value with Python's own objects as the calls that they would be pickled as."""
    match value:
        case Reduced():
            function, arguments = value.parts
            return Call(Global(function.__module__, function.__qualname__), tuple(map(as_opcodes, arguments)))
        case Call():
            return Call(as_opcodes(value.function), tuple(map(as_opcodes, value.arguments)), as_opcodes(value.state))
        case Persistent():
            return Persistent(as_opcodes(value.identifier))
        case dict():
            return {as_opcodes(key): as_opcodes(held) for key, held in value.items()}
        case list() | tuple():
            return type(value)(map(as_opcodes, value))
    return value


def legacy(pickle_of_value, keys=(), storages=b""):
    system = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    head = pickled(0x1950A86A20F9469CFC6C) + pickled(1001) + pickled(system)
    return head + pickle_of_value + pickled(list(keys)) + storages


# --- what is no gadget, but wrong ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        tensor(0, (7,), (1,)),
        tensor(6, (1,), (1,)),
        tensor(0, (2, 3), (3, 3)),
        tensor(-1, (1,), (1,)),
        tensor(0, (2,), (-1,)),
        tensor(0, (1 << 62, 1 << 62), (1, 1)),
        tensor(0, (1 << 62,), (1 << 62,)),
        tensor(1 << 63, (1,), (1,)),
        tensor(0, (2,), (1, 1)),
        tensor(0, [2], [1]),
        tensor(0, 2, 1),
        tensor(0, (1.5,), (1,)),
        tensor(0, ("a",), (1,)),
        tensor(0, (1,) * 1000, (1,) * 1000),
        tensor("0", (1,), (1,)),
        tensor(0, (2,), (1,), 5),
        REBUILD(storage()),
        REBUILD(),
        storage(count=7),
        storage(count=1 << 60),
        storage(count=-1),
        storage(key="1"),
        storage(key="../0"),
        storage(key=0),
        storage(kind="ComplexFloatStorage"),
        [storage(), storage(count=3)],
        Persistent(None),
        Persistent(("storage",)),
        Persistent(("module", 1, 2, 3, 4)),
        Persistent(("storage", "torch.FloatStorage", "0", "cpu", 6)),
        Global("torch", "Size")(storage()),
        Global("torch", "Size")({}),
        Global("collections", "OrderedDict")([1]),
        Global("_codecs", "encode")("a", "rot13"),
        Global("_codecs", "encode")(storage(), "latin1"),
        Global("_codecs", "encode")("\u1234", "latin1"),
        Global("torch", "device")("cpu", "x"),
        Global("builtins", "set")(storage()),
        Global("torch._utils", "_rebuild_tensor_v3")(storage(), 0, (1,), (1,), False, {}, Global("torch", "float32")),
    ],
    ids=str,
)
def test_tensors_that_do_not_fit_their_storage_are_refused(value, tmp_path):
    refused(value, tmp_path)


def test_an_endless_reference_is_refused_without_a_deep_message(tmp_path):
    nested = Raw(b"]" * 100_000 + b"a" * 99_999)
    assert "storage" in refused(Persistent(("storage", nested, nested, nested, nested)), tmp_path).message


def test_archives_that_are_no_checkpoints_are_refused(tmp_path):
    """Compressed, doubled and path-like members, two pickles, none, big-endian numbers."""
    path, value = tmp_path / "model.pt", pickled({})
    for members, compression, text in [
        ([("model/data.pkl", value)], 8, "not compressed"),
        ([("model/data.pkl", value), ("model/data.pkl", value)], 0, "twice"),
        ([("model/data.pkl", value), ("../canary", b"x")], 0, "plain relative path"),
        ([("a/data.pkl", value), ("b/data.pkl", value)], 0, "one member"),
        ([("model/other", value)], 0, "one member"),
        ([("data.pkl", value)], 0, "one member"),
        ([("model/data.pkl", value), ("model/byteorder", b"big")], 0, "little-endian"),
        ([("model/data.pkl", value[:-1]), ("model/x", value)], 0, "truncated|ends without|exhausted"),
    ]:
        path.write_bytes(archive(members, compression))
        with pytest.raises(FormatError, match=text):
            torch.read(path)
    assert not (tmp_path.parent / "canary").exists()


def test_a_pickle_may_not_reach_into_the_next_member(tmp_path):
    body = pickled(Raw(b"B" + struct.pack("<I", 10) + b"x"))
    error = refused(Raw(body[2:-1]), tmp_path)
    assert "data.pkl" == error.field and 0 < error.offset < (tmp_path / "model.pt").stat().st_size


def test_a_broken_row_of_pickles_is_refused(tmp_path):
    """Every part is held against the others: keys, lengths, and the end of the file."""
    path, value = tmp_path / "model.pt", pickled(tensor(0, (2, 3), (3, 1)))
    good = legacy(value, ["0"], struct.pack("<q", 6) + FLOATS)
    path.write_bytes(good)
    assert [[0, 1, 2], [3, 4, 5]] == torch.read(path).tolist()
    for data in [
        *(good[:length] for length in range(len(good))),
        legacy(value, ["0"], struct.pack("<q", 5) + FLOATS),
        legacy(value, ["0"], struct.pack("<q", -1) + FLOATS),
        legacy(value, ["1"], struct.pack("<q", 6) + FLOATS),
        legacy(value, [0], struct.pack("<q", 6) + FLOATS),
        legacy(value, ["0", "0"], struct.pack("<q", 6) + FLOATS),
        legacy(pickled(storage(count=1 << 50)), ["0"], struct.pack("<q", 1 << 50)),
        legacy(pickled([storage(), storage(count=3)]), ["0"], struct.pack("<q", 6) + FLOATS),
        pickled(1) + good,
        good.replace(pickled(1001), pickled(1002)),
        good.replace(b"\x88", b"\x89"),
    ]:
        path.write_bytes(data)
        assert refusal(torch.read, path) is not None


# --- against torch --------------------------------------------------------------------------------------


def test_values_without_tensors_are_read(tmp_path):
    value = {"epoch": 3, "lr": 0.1, "names": ["a", ("b", None, True)], 7: b"\xff"}
    assert value == read(value, tmp_path)
    assert (2, 3) == read(Global("torch", "Size")((2, 3)), tmp_path)
    assert {"a": 1} == read(Global("collections", "OrderedDict")([("a", 1)]), tmp_path)
    assert dtypes.bfloat16 is read(Global("torch", "bfloat16"), tmp_path)
    assert ["cpu", "cuda:1"] == read([Global("torch", "device")("cpu"), Global("torch", "device")("cuda", 1)], tmp_path)


@pytest.mark.parametrize("new", [True, False], ids=["archive", "row of pickles"])
def test_checkpoints_of_torch_come_back(tmp_path, new):
    """O05: slices, transposes, expanded and overlapping tensors, shared storages, every dtype, parameters."""
    peer = pytest.importorskip("torch")
    a = peer.arange(6.0).reshape(2, 3)
    kinds = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool".split()
    value = {
        "column": a[:, 1],
        "transposed": a.T,
        "expanded": peer.tensor([1.0, 2.0]).expand(3, 2),
        "windows": a.unfold(1, 2, 1),
        "empty": peer.zeros(0, 3),
        "scalar": peer.tensor(3.5),
        "parameter": peer.nn.Parameter(a),
        "one": a[1:2, 0:1],
        **{name: peer.tensor([0, 1, 2]).to(getattr(peer, name)) for name in kinds},
    }
    peer.save(
        {"state": value, "shape": a.shape, "kind": peer.float16}, tmp_path / "m.pt", _use_new_zipfile_serialization=new
    )
    found = torch.read(tmp_path / "m.pt")
    assert ((2, 3), dtypes.float16) == (found["shape"], found["kind"])
    for name, expected in value.items():
        got = found["state"][name]
        assert (tuple(expected.shape), expected.tolist()) == (got.shape, got.tolist()), name
        assert str(expected.dtype).removeprefix("torch.") == got.dtype.name


@pytest.mark.parametrize(
    "kind", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "uint16", "uint64"]
)
def test_types_that_torch_keeps_as_bytes_come_back(tmp_path, kind):
    peer = pytest.importorskip("torch")
    value = peer.arange(256, dtype=peer.uint8).view(getattr(peer, kind))
    peer.save([value, value[1::3]], tmp_path / "m.pt")
    for expected, found in zip([value, value[1::3]], torch.read(tmp_path / "m.pt"), strict=True):
        same = peer.equal(expected.contiguous().view(peer.uint8), peer.tensor(list(found.data()), dtype=peer.uint8))
        assert same and expected.shape == found.shape


def test_a_storage_that_is_one_tensor_is_used_where_it_is(tmp_path):
    """What is realized of it is not copied, and others over the storage are views of it."""
    path, held = tmp_path / "model.pt", storage(kind="CharStorage")
    matrix, last = tensor(0, (2, 3), (3, 1), held), tensor(3, (3,), (1,), held)
    path.write_bytes(checkpoint(pickled({"first": matrix, "then": last}), {"0": bytes(range(6))}))
    whole, row = torch.read(path).values()
    kernels = GlobalCounters.kernel_count
    whole.realize()
    assert kernels == GlobalCounters.kernel_count and [3, 4, 5] == row.tolist()
    row.assign(row * 2).realize()
    assert [[0, 1, 2], [6, 8, 10]] == whole.tolist()
    path.write_bytes(checkpoint(pickled({"first": last, "then": matrix}), {"0": bytes(range(6))}))
    row, whole = torch.read(path).values()
    assert [3, 4, 5] == row.tolist() and [[0, 1, 2], [3, 4, 5]] == whole.tolist()


def test_a_state_dictionary_with_versions_is_read(tmp_path):
    peer = pytest.importorskip("torch")
    model = peer.nn.Sequential(peer.nn.Linear(2, 3), peer.nn.BatchNorm1d(3))
    peer.save(
        {"model": model.state_dict(), "optim": peer.optim.Adam(model.parameters()).state_dict()}, tmp_path / "m.pt"
    )
    found = torch.read(tmp_path / "m.pt")
    assert {name: each.tolist() for name, each in model.state_dict().items()} == {
        name: each.tolist() for name, each in found["model"].items()
    }
    assert 0.001 == found["optim"]["param_groups"][0]["lr"]


def test_a_whole_module_is_refused_by_name(tmp_path):
    peer = pytest.importorskip("torch")
    peer.save(peer.nn.Linear(2, 3), tmp_path / "m.pt")
    with pytest.raises(FormatError, match=r"'torch\.nn\.modules\.linear\.Linear'"):
        torch.read(tmp_path / "m.pt")


def test_a_tensor_on_another_device_is_copied_there(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(checkpoint(pickled({"a": tensor(0, (2,), (1,))}), {"0": FLOATS}))
    found = torch.read(path, "PYTHON")["a"]
    assert isinstance(found, Tensor) and ("PYTHON", [0, 1]) == (found.device, found.tolist())
