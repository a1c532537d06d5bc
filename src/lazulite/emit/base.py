"""What an emitter makes: `Binary`, a finished program as bytes that can be kept on disk."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Binary:
    """A compiled kernel."""

    name: str
    code: bytes
    """An ELF relocatable object, or text."""
    kind: str
    """``elf`` or ``text``."""
    scratch_bytes: int = 0
    """Memory each thread needs, aligned to 64 bytes."""
    parallel: int = 1
    """The extent of the outermost parallel range, or 1."""

    @property
    def key(self) -> str:
        """A hash of everything in the binary."""
        facts = f"{self.name} {self.kind} {self.scratch_bytes} {self.parallel} ".encode()
        return hashlib.sha256(facts + self.code).hexdigest()

    def to_json(self) -> dict[str, object]:
        """The binary as plain values.

        >>> binary = Binary("k", b"code", "text")
        >>> Binary.from_json(binary.to_json()) == binary
        True
        """
        return {"name": self.name, "code": base64.b64encode(self.code).decode(), "kind": self.kind,
                "scratch_bytes": self.scratch_bytes, "parallel": self.parallel}  # fmt: skip

    @staticmethod
    def from_json(data: Mapping[str, object]) -> Binary:
        """What `to_json` wrote; ValueError where it did not."""
        try:
            name, code, kind = str(data["name"]), base64.b64decode(str(data["code"]), validate=True), str(data["kind"])
            scratch, parallel = data["scratch_bytes"], data["parallel"]
        except KeyError as missing:
            raise ValueError(f"a binary lacks the field {missing}") from None
        if kind not in ("elf", "text") or not isinstance(scratch, int) or not isinstance(parallel, int):
            raise ValueError("a binary has a field of another type")
        return Binary(name, code, kind, scratch, parallel)
