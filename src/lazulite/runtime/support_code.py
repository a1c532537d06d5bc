"""Compiled functions of the runtime itself, written as LLVM assembly: compiled once, kept on disk, loaded.

They are no kernels: what they are and what they take is told where their text is.
"""

from __future__ import annotations

import hashlib

from lazulite.base.cache import disk_cache
from lazulite.runtime.loader import Image, load_object

CODE: dict[str, bytes] = {}
"""Objects by the hash of their text: what this process has loaded, and what came with a saved function."""


def loaded(kind: str, source: str) -> Image | None:
    """The functions of a text, known, from disk or compiled now; None where nobody has them and LLVM is missing."""
    disk = disk_cache()
    key = hashlib.sha256(source.encode()).hexdigest()
    code = CODE.get(key)
    if code is None and disk is not None:
        code = disk.get(kind, key)
    if code is None:
        try:
            code = _compile(source)
        except ImportError:
            return None
        if disk is not None:
            disk.put(kind, key, code)
    CODE[key] = code
    return load_object(code)


def _compile(source: str) -> bytes:
    from lazulite.emit.llvm_object import compile_text
    from lazulite.ir.target import target

    return compile_text(source, target("CPU:LLVM", ()))
