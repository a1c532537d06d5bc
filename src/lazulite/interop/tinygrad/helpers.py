"""tinygrad's helpers: small functions of Python values that its scripts use."""

from __future__ import annotations

import gc
import getpass
import gzip
import hashlib
import math
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ContextDecorator
from itertools import chain
from pathlib import Path
from typing import Any, Self

OSX, WIN = sys.platform == "darwin", sys.platform == "win32"
_COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


# --- collections -----------------------------------------------------------------------------------


def prod(x: Iterable[Any]) -> Any:
    """The product; 1 of nothing."""
    return math.prod(x)


def dedup(x: Iterable[Any]) -> list[Any]:
    """Each element once, in order.

    >>> dedup([3, 1, 3])
    [3, 1]
    """
    return [*dict.fromkeys(x)]


def argfix(*x: Any) -> tuple[Any, ...]:
    """One sequence, or several arguments, as a tuple.

    >>> argfix([1, 2]) == argfix(1, 2)
    True
    """
    if not x or type(x[0]) not in (tuple, list):
        return x
    if len(x) > 1:
        raise ValueError(f"bad arg {x}")
    return tuple(x[0])


def argsort(x: Any) -> Any:
    """The positions that sort a sequence."""
    return type(x)(sorted(range(len(x)), key=x.__getitem__))


def all_same(items: Sequence[Any]) -> bool:
    """Whether all are equal; true for none."""
    return all(item == items[0] for item in items)


def all_int(t: Sequence[Any]) -> bool:
    """Whether all are integers."""
    return all(isinstance(size, int) for size in t)


def flatten(parts: Iterable[Iterable[Any]]) -> list[Any]:
    """One level of nesting taken away."""
    return [*chain.from_iterable(parts)]


def fully_flatten(value: Any) -> list[Any]:
    """All levels of nesting taken away.

    >>> fully_flatten([1, [2, [3]]])
    [1, 2, 3]
    """
    if isinstance(value, str) or not (hasattr(value, "__len__") and hasattr(value, "__getitem__")):
        return [value]
    if getattr(value, "shape", None) == ():
        return [value[()]]
    return flatten(map(fully_flatten, value))


def get_shape(x: Any) -> tuple[int, ...]:
    """The shape of nested sequences; ValueError where they are uneven."""
    if isinstance(x, str) or not hasattr(x, "__len__") or getattr(x, "shape", None) == ():
        return ()
    inner = [get_shape(each) for each in x]
    if not all_same(inner):
        raise ValueError(f"inhomogeneous shape from {x}")
    return (len(inner), *(inner[0] if inner else ()))


def merge_dicts(ds: Iterable[dict[Any, Any]]) -> dict[Any, Any]:
    """One dictionary; RuntimeError where two give a key different values."""
    merged: dict[Any, Any] = {}
    for each in ds:
        for key, value in each.items():
            if merged.setdefault(key, value) != value:
                raise RuntimeError(f"{key!r} has different values, {merged[key]!r} and {value!r}")
    return merged


def partition(itr: Iterable[Any], fxn: Callable[[Any], bool]) -> tuple[list[Any], list[Any]]:
    """Those for which the function is true, and the others."""
    yes: list[Any] = []
    no: list[Any] = []
    for item in itr:
        (yes if fxn(item) else no).append(item)
    return yes, no


def unwrap(x: Any) -> Any:
    """The value, which is not None."""
    if x is None:
        raise AssertionError("a value is None")
    return x


def get_single_element(x: Sequence[Any]) -> Any:
    """The only element."""
    if len(x) != 1:
        raise AssertionError(f"{x} must only have 1 element")
    return x[0]


def get_child(obj: Any, key: str) -> Any:
    """What a path such as ``layers.0.weight`` leads to."""
    for part in key.split("."):
        if part.isnumeric():
            obj = obj[int(part)]
        else:
            obj = obj[part] if isinstance(obj, dict) else getattr(obj, part)
    return obj


def make_tuple(x: Any, cnt: int) -> tuple[Any, ...]:
    """An integer as often as asked for; a sequence as a tuple."""
    return (x,) * cnt if isinstance(x, int) else tuple(x)


def to_tuple(x: Any) -> tuple[Any, ...]:
    """The value in a tuple, unless it is one."""
    return x if isinstance(x, tuple) else (x,)


def flat_to_grouped(padding: Sequence[Any]) -> tuple[tuple[Any, Any], ...]:
    """Padding as PyTorch writes it, last axis first, as one pair an axis."""
    return tuple(zip(padding[-2::-2], padding[::-2], strict=True))


# --- numbers ---------------------------------------------------------------------------------------


def ceildiv(num: Any, amt: Any) -> Any:
    """The quotient, rounded up."""
    result = -(num // -amt)
    return int(result) if isinstance(result, float) else result


def round_up(num: int, amt: int) -> int:
    """The next multiple."""
    return -(-num // amt) * amt


def round_down(num: int, amt: int) -> int:
    """The last multiple."""
    return num // amt * amt


def next_power2(x: int) -> int:
    """The next power of two; 1 for 0."""
    return 1 << max(x - 1, 0).bit_length()


# --- text ------------------------------------------------------------------------------------------


def colored(st: Any, color: str | None, background: bool = False) -> str:
    """The text in a colour of the terminal, bright for a name in capitals; plain with NO_COLOR."""
    if color is None or os.environ.get("NO_COLOR", "0") not in ("", "0"):
        return str(st)
    code = 30 + _COLORS.index(color.lower()) + 10 * background + 60 * color.isupper()
    return f"\033[{code}m{st}\033[0m"


def colorize_float(x: float) -> str:
    """A factor: green where it is small, red where it is large."""
    return colored(f"{x:7.2f}x", "green" if x < 0.75 else "red" if x > 1.15 else "yellow")


def time_to_str(t: float, w: int = 8) -> str:
    """Seconds in a fitting unit."""
    unit, scale = ("s ", 1.0) if t > 10 else ("ms", 1e3) if t > 1e-2 else ("us", 1e6)
    return f"{t * scale:{w}.2f}{unit}"


def size_to_str(s: int) -> str:
    """Bytes in a fitting unit."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if s >= size:
            return f"{s / size:.2f} {unit}"
    return f"{s} B"


def ansistrip(s: str) -> str:
    """The text without the codes of colours."""
    return re.sub("\x1b\\[(K|.*?m)", "", s)


def ansilen(s: str) -> int:
    """How wide the text is."""
    return len(ansistrip(s))


def pluralize(st: str, cnt: int) -> str:
    """A number of things."""
    return f"{cnt} {st}{'' if cnt == 1 else 's'}"


def strip_parens(fst: str) -> str:
    """The text without parentheses around the whole."""
    if not (fst.startswith("(") and fst.endswith(")")):
        return fst
    depth = 0
    for character in fst[1:-1]:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return fst
    return fst[1:-1] if depth == 0 else fst


# --- time, memory, progress ------------------------------------------------------------------------


class Timing(ContextDecorator):
    """Print how long a block took: ``with Timing("load: "): ..``."""

    def __init__(self, prefix: str = "", on_exit: Callable[[int], str] | None = None, enabled: bool = True) -> None:
        self.prefix, self.on_exit, self.enabled = prefix, on_exit, enabled

    def __enter__(self) -> Self:
        self.st = time.perf_counter_ns()
        return self

    def __exit__(self, *error: object) -> None:
        self.et = time.perf_counter_ns() - self.st
        if self.enabled:
            print(f"{self.prefix}{self.et * 1e-6:6.2f} ms{self.on_exit(self.et) if self.on_exit else ''}")


class disable_gc(ContextDecorator):
    """No garbage collection in a block."""

    def __enter__(self) -> Self:
        self._was_enabled = gc.isenabled()
        gc.disable()
        return self

    def __exit__(self, *error: object) -> None:
        if self._was_enabled:
            gc.enable()


class _Quiet:
    """A progress bar where there is no package for one."""

    def __init__(self, iterable: Iterable[Any] | None = None, **options: Any) -> None:
        self.iterable, self.n = iterable, 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self.iterable or ())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def update(self, n: int = 1, close: bool = False) -> None:
        self.n += n

    def set_description(self, desc: str) -> None:
        return None

    @staticmethod
    def write(s: str) -> None:
        print(s)


def tqdm(iterable: Iterable[Any] | None = None, **options: Any) -> Any:
    """A progress bar, by the package tqdm if it is there."""
    try:
        from tqdm import tqdm as bar
    except ImportError:
        return _Quiet(iterable, **options)
    return bar(iterable, **options)


def trange(n: int, **options: Any) -> Any:
    """`range` with a progress bar."""
    return tqdm(range(n), total=n, **options)


# --- files -----------------------------------------------------------------------------------------


def temp(x: str, append_user: bool = False) -> str:
    """A path in the directory for temporary files."""
    return (Path(tempfile.gettempdir()) / (f"{x}.{getpass.getuser()}" if append_user else x)).as_posix()


def fetch(
    url: str,
    name: Path | str | None = None,
    subdir: str | None = None,
    gunzip: bool = False,
    allow_caching: bool = True,
) -> Path:
    """What an address holds, as a file that is kept for the next time; a path as it is."""
    from urllib.request import Request, urlopen

    if url.startswith(("/", ".")):
        return Path(url)
    if isinstance(name, Path) or (name is not None and "/" in name):
        path = Path(name)
    else:
        folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "lazulite" / "downloads"
        stem = name or hashlib.sha256(url.encode()).hexdigest()
        path = folder / (subdir or "") / f"{stem}{'.gunzip' if gunzip else ''}"
    if allow_caching and path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with urlopen(Request(url, headers={"User-Agent": "lazulite"}), timeout=30) as answer:
        content = answer.read()
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(gzip.decompress(content) if gunzip else content)
    return Path(file.name).rename(path)
