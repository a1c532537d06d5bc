"""A bounded store on disk for what is expensive to make again: compiled programs and plans.

An entry is found by its kind and by a key that the caller computes (the SHA-256, in hexadecimal, of
everything that the value depends on).  What is stored may be machine code, so an entry counts only
if the directory and the file belong to this user, nobody else may write to them, and the checksum in
the file is right; anything else is as if it were not there.  Files appear whole, by renaming, so
several processes may use one directory.  When the store is full, what was unused for longest goes.

Nothing here raises because of the file system: a store that cannot be used stores nothing.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from lazulite.base.replacing import replacing
from lazulite.base.settings import SETTINGS

_MAGIC = b"lazulite cache 1\n"
_HEAD = len(_MAGIC) + hashlib.sha256().digest_size
_KIND = re.compile(r"[a-z][a-z0-9_]{0,31}")
_KEY = re.compile(r"[0-9a-f]{64}")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_FRESH = 60.0
"""Seconds for which a use is not noted again."""
_ABANDONED = 3600.0
"""Seconds after which an unfinished file belongs to a process that died."""
DEFAULT_LIMIT = 1 << 30


class DiskCache:
    """The store in one directory; `limit` bounds the bytes of all its files."""

    def __init__(self, directory: str | os.PathLike[str], limit: int = DEFAULT_LIMIT) -> None:
        self.directory, self.limit = Path(directory), limit
        self._size: int | None = None  # bytes stored, as far as this process knows; None before the first look

    def get(self, kind: str, key: str) -> bytes | None:
        """The bytes that were put under this key, or None."""
        path = self._path(kind, key)
        try:
            if not (_is_private(os.lstat(self.directory)) and _is_private(os.lstat(path.parent))):
                return None
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
            with open(descriptor, "rb") as file:
                status = os.fstat(descriptor)
                if not stat.S_ISREG(status.st_mode) or not _is_private(status) or status.st_size > self.limit:
                    return None
                content = file.read()
                if time.time() - status.st_mtime > _FRESH:
                    os.utime(descriptor)  # the time of change is the time of last use
        except OSError:
            return None
        value = content[_HEAD:]
        return value if content[:_HEAD] == _head(value) else None

    def put(self, kind: str, key: str, value: bytes) -> None:
        """Store the bytes; a value that does not fit is not stored."""
        path = self._path(kind, key)
        size = _HEAD + len(value)
        if size > self.limit:
            return
        try:
            if not (_make_private(self.directory) and _make_private(path.parent)):
                return
            self._write(path, _head(value) + value)
            self._size = self._measure() if self._size is None else self._size + size
            if self._size > self.limit:
                self._evict()
        except OSError:  # no space, no permission, a directory removed meanwhile: the value is made again next time
            return

    def clear(self) -> None:
        """Remove every entry."""
        for path, _ in self._files():
            path.unlink(missing_ok=True)
        self._size = 0

    # --- files ----------------------------------------------------------------------------------

    def _path(self, kind: str, key: str) -> Path:
        if not _KIND.fullmatch(kind) or not _KEY.fullmatch(key):
            raise ValueError(f"a cache key is a word and the hexadecimal SHA-256, got {kind!r} and {key!r}")
        return self.directory / kind / key

    def _write(self, path: Path, content: bytes) -> None:
        with replacing(path, mode=0o600) as file:
            file.write(content)

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        """Every entry and unfinished file of this store; anything else in the directory is left alone."""
        for kind in _entries(self.directory):
            for path in _entries(kind) if _KIND.fullmatch(kind.name) else ():
                if _KEY.fullmatch(path.name) or path.name.startswith("."):
                    try:
                        yield path, os.lstat(path)
                    except OSError:  # another process removed it
                        continue

    def _measure(self) -> int:
        return sum([status.st_size for _, status in self._files()])

    def _evict(self) -> None:
        """Remove the files unused for longest until a tenth is free, and what dead processes left."""
        now = time.time()
        files = sorted(self._files(), key=lambda entry: entry[1].st_mtime)
        total = sum([status.st_size for _, status in files])
        for path, status in files:
            unfinished = path.name.startswith(".")
            if now - status.st_mtime > _ABANDONED if unfinished else total > self.limit * 9 // 10:
                path.unlink(missing_ok=True)
                total -= status.st_size
        self._size = total


def _head(value: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(value).digest()


def _is_private(status: os.stat_result) -> bool:
    """Owned by this user, and nobody else may write; a symbolic link is not (its mode lets everybody)."""
    return status.st_uid == os.geteuid() and not status.st_mode & _OTHERS_WRITE


def _make_private(directory: Path) -> bool:
    directory.parent.mkdir(parents=True, exist_ok=True)
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        status = os.lstat(directory)
        return stat.S_ISDIR(status.st_mode) and _is_private(status)
    return True


def _entries(directory: Path) -> list[Path]:
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def default_directory() -> Path:
    """The setting CACHE_DIR, else ``lazulite`` in the user's cache directory."""
    if SETTINGS.CACHE_DIR:
        return Path(SETTINGS.CACHE_DIR).expanduser()
    root = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(root) if os.path.isabs(root) else Path.home() / ".cache") / "lazulite"


_opened: dict[Path, DiskCache] = {}


def disk_cache() -> DiskCache | None:
    """The store that the settings name; None where CACHE=0 or the user has no home directory."""
    if not SETTINGS.CACHE:
        return None
    try:
        directory = default_directory()
    except RuntimeError:  # no home directory
        return None
    return _opened.setdefault(directory, DiskCache(directory))
