"""Captured calls as a file: a header of plain values, then machine code and data of the host.

`Archive` is what is written: `call` adds a captured call and gives its description, `to_bytes` makes the file.
`Opened` reads one; its `call` makes a description executable, with the binaries of the file (those of
the runtime's own functions among them), so neither the function nor a compiler is needed.  The file is

    8 bytes   LAZULITE
    8         the length of the header, as a little-endian integer
    8         that of the rest
    32        the SHA-256 of both
    ...       the header (JSON), then the rest, of which the header names parts by begin and length

Invariant: nothing of a file is believed before its checksum is right, and code runs on a machine like the one
that it was made for only.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, NoReturn

from lazulite.base.errors import CaptureError, DeviceError, FormatError
from lazulite.emit.base import Binary
from lazulite.engine.captured import Captured
from lazulite.engine.loaded import Loaded
from lazulite.engine.recording import Draw, Given, Leaf, Made, Seed, Source, Step, Trace, Word
from lazulite.engine.results import Fill, Result, Same
from lazulite.ir.dtype import by_name
from lazulite.runtime.device import Program
from lazulite.runtime.registry import Device
from lazulite.runtime.support_code import CODE
from lazulite.schedule.plan import Plan

_MAGIC, _VERSION = b"LAZULITE", 1
_FRONT = struct.Struct("<8sQQ32s")
_SOURCES: Mapping[str, type[Leaf | Made | Given]] = {"leaf": Leaf, "made": Made, "given": Given}


class Archive:
    """A file that is being put together."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._kernels: dict[str, dict[str, object]] = {}
        self._machines: dict[str, str] = {}

    def call(self, captured: Captured) -> dict[str, object]:
        """The description of a call; CaptureError where it is more than its arguments say."""
        trace = captured.trace
        if captured.hidden:
            raise CaptureError("save", "the function uses tensors that are not among its arguments")
        return {
            "steps": [self._step(step) for step in trace.steps],
            "given": [self._part(data) for data in trace.given],
            "given_devices": trace.given_devices,
            "leaf_devices": trace.leaf_devices,
            "drawn": trace.drawn,
            "results": [_packed_result(result) for result in captured.results],
        }

    def to_bytes(self, description: Mapping[str, object]) -> bytes:
        """The file; the description speaks of the calls that were added."""
        support = {key: self._part(code) for key, code in CODE.items()}
        facts = {
            "version": _VERSION, "machines": self._machines, "kernels": self._kernels, "support": support, **description
        }  # fmt: skip
        header = json.dumps(facts, separators=(",", ":")).encode()
        digest = hashlib.sha256(header + self._rest).digest()
        return _FRONT.pack(_MAGIC, len(header), len(self._rest), digest) + header + self._rest

    def _part(self, data: bytes) -> tuple[int, int]:
        begin = len(self._rest)
        self._rest += data
        return begin, len(data)

    def _step(self, step: Step) -> dict[str, object]:
        loaded = step.loaded
        for command in loaded.commands:
            device = command.queue.device.name
            self._machines[device] = machine(device)
            if command.program is not None:
                self._add(command.launch.kernel, command.program.binary)
        for filling in loaded.fillings:
            self._add(filling.key, filling.program.binary)
        return {
            "plan": json.loads(loaded.plan.to_json()),
            "device": loaded.device,
            "inputs": [_packed_source(source) for source in step.inputs],
            "words": [_packed_word(word) for word in step.words],
            "writes": [_packed_source(source) for source in step.writes],
        }

    def _add(self, key: str, binary: Binary) -> None:
        if key not in self._kernels:
            facts = {name: value for name, value in asdict(binary).items() if name != "code"}
            self._kernels[key] = {**facts, "code": self._part(binary.code)}


class Opened:
    """A file that was read; FormatError where it is damaged, or for another machine."""

    def __init__(self, data: bytes, file: str) -> None:
        self._file = file
        if len(data) < _FRONT.size:
            self.refuse("length", len(data), f"the file ends within its first {_FRONT.size} bytes")
        magic, header, rest, digest = _FRONT.unpack_from(data)
        if magic != _MAGIC:
            self.refuse("magic", 0, "this is no file of a captured function")
        if _FRONT.size + header + rest != len(data):
            self.refuse("length", 8, f"the file has {len(data)} bytes and says {_FRONT.size + header + rest}")
        if hashlib.sha256(data[_FRONT.size :]).digest() != digest:
            self.refuse("checksum", 24, "the contents are not those that were written")
        self._rest = data[_FRONT.size + header :]
        self._programs: dict[tuple[str, str], Program] = {}
        try:
            self.header: dict[str, Any] = json.loads(data[_FRONT.size : _FRONT.size + header])
            version, machines = self.header["version"], dict(self.header["machines"])
        except (ValueError, KeyError, TypeError) as error:
            self.refuse_header(error)
        if version != _VERSION:
            self.refuse("version", _FRONT.size, f"version {_VERSION} can be read, the file has {version}")
        for device, wanted in machines.items():
            self._require_machine(device, wanted)
        try:
            for key, part in self.header["support"].items():
                CODE.setdefault(key, self._part(part))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.refuse_header(error)

    def call(self, description: Mapping[str, Any]) -> Captured:
        """A call, ready to be carried out."""
        trace = Trace(
            [self._step(step) for step in description["steps"]],
            [self._part(part) for part in description["given"]],
            description["drawn"],
            description["leaf_devices"],
            description["given_devices"],
        )
        return Captured(trace, [_result(result) for result in description["results"]])

    def refuse_header(self, error: Exception) -> NoReturn:
        """A FormatError for a header whose contents make no sense."""
        self.refuse("header", _FRONT.size, f"{type(error).__name__}: {error}")

    def refuse(self, field: str, offset: int, reason: str) -> NoReturn:
        """A FormatError."""
        raise FormatError("load_captured", reason, file=self._file, field=field, offset=offset)

    def _require_machine(self, device: str, wanted: str) -> None:
        try:
            present = machine(device)
        except DeviceError as error:
            self.refuse("machines", _FRONT.size, str(error))
        if present != wanted:
            different = " ".join(sorted(set(wanted.split()) ^ set(present.split())))
            self.refuse("machines", _FRONT.size, f"it was made for another machine; what differs: {different}")

    def _step(self, step: Mapping[str, Any]) -> Step:
        loaded = Loaded(Plan.from_json(json.dumps(step["plan"])), step["device"], self._program)
        inputs, writes = ([_source(source) for source in step[name]] for name in ("inputs", "writes"))
        return Step(loaded, tuple(inputs), tuple([_word(word) for word in step["words"]]), tuple(writes))

    def _program(self, kernel: str, device: str) -> Program:
        program = self._programs.get((kernel, device))
        if program is None:
            facts = self.header["kernels"][kernel]
            binary = Binary(**{**facts, "code": self._part(facts["code"])})
            program = self._programs[kernel, device] = Device[device].load(binary)
            program.binary = binary
        return program

    def _part(self, place: Sequence[int]) -> bytes:
        begin, length = place
        if begin < 0 or length < 0 or begin + length > len(self._rest):
            raise ValueError(f"bytes {begin} to {begin + length} do not lie in {len(self._rest)} bytes")
        return self._rest[begin : begin + length]


def machine(device: str) -> str:
    """What a machine has to be to run the programs of a device; empty where any will do."""
    target = Device[device].target
    return "" if target is None else target.machine


# --- sources, words and results ----------------------------------------------------------------


def _packed_source(source: Source) -> list[object]:
    if isinstance(source, Made):
        return ["made", source.run, source.buffer]
    return [type(source).__name__.lower(), source.number]


def _source(packed: Sequence[Any]) -> Source:
    kind, *numbers = packed
    return _SOURCES[kind](*map(int, numbers))


def _packed_word(word: Word) -> object:
    if isinstance(word, int):
        return word
    if isinstance(word, Draw):
        return ["draw", word.offset]
    if isinstance(word, Seed):
        return ["seed"]
    raise CaptureError("save", "the function was captured with sizes that vary, which a file cannot hold yet")


def _word(packed: Any) -> Word:
    if isinstance(packed, int):
        return packed
    return Seed() if packed == ["seed"] else Draw(int(packed[1]))


def _packed_result(result: Same | Result) -> dict[str, object]:
    if isinstance(result, Same):
        return {"same": result.leaf}
    if result.remembers:
        raise CaptureError(
            "save", "a result remembers how it was made, for gradients, and a file does not",
            hint="call the function with tensors of requires_grad=False, or return detach() of the result",
        )  # fmt: skip
    source = result.source
    if not isinstance(source, Made | Leaf | Given | Fill):
        raise CaptureError("save", "a result is a constant that has no memory", hint="return contiguous() of it")
    return {
        "source": ["fill", source.value] if isinstance(source, Fill) else _packed_source(source),
        "owns": result.owns,
        "dtype": result.dtype.name,
        "shape": list(result.shape),
        "device": result.device,
        "requires_grad": result.requires_grad,
        "leaf": result.leaf,
        "shared": result.shared,
        "above": result.above,
    }


def _result(packed: Mapping[str, Any]) -> Same | Result:
    if "same" in packed:
        return Same(packed["same"])
    source = packed["source"]
    facts = {name: packed[name] for name in ("owns", "device", "requires_grad", "leaf", "shared")}
    return Result(
        Fill(source[1]) if source[0] == "fill" else _source(source), dtype=by_name(packed["dtype"]),
        shape=tuple(packed["shape"]), above=_tuples(packed["above"]), remembers=False, origin=None, **facts,
    )  # fmt: skip


def _tuples(value: Any) -> Any:
    """Tuples where JSON has lists."""
    return tuple([_tuples(each) for each in value]) if isinstance(value, list) else value
