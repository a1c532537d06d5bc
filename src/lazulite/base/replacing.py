"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def replacing(path: str | os.PathLike[str], mode: int = 0o666) -> Iterator[IO[bytes]]:
    """A new file that takes the place of `path` when the block ends, and is gone if that raises.

    Until then it stands beside `path` under a name that begins with a dot.
    """
    target = Path(path)
    unfinished = target.with_name(f".{secrets.token_hex(16)}")
    descriptor = os.open(unfinished, _FLAGS, mode)
    try:
        with open(descriptor, "wb") as file:
            yield file
        os.replace(unfinished, target)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
