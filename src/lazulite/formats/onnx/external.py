"""Elements that a model keeps in other files: where they may lie, checked before one byte is read.

A place is a plain relative path below the folder of the model.  No part of it may be a link, the file has
to be a regular one with a single name, and its range lies in the file.  Ranges of one file may be equal
(tied weights) but not overlap, so all of them together are no larger than the files are.
"""

from __future__ import annotations

import os
from bisect import bisect_right, insort
from pathlib import Path, PurePosixPath, PureWindowsPath

from lazulite.base.errors import FormatError
from lazulite.formats.onnx.proto import TensorData
from lazulite.formats.onnx.wire import Part
from lazulite.formats.source import Source


class ExternalFiles:
    """The files beside one model, each opened once."""

    def __init__(self, model: Source, folder: Path | None) -> None:
        self.model, self.folder = model, folder
        self._open: dict[str, Source] = {}
        self._taken: dict[str, list[tuple[int, int]]] = {}

    def part(self, data: TensorData, needed: int, field: str) -> Part:
        """Where the elements of a tensor lie, of which it needs this many bytes."""
        facts = {entry.key: entry.value for entry in data.external_data}
        source = self._source(facts.get("location", ""), field)
        begin = self._number(facts, "offset", 0, field)
        length = self._number(facts, "length", needed, field)
        if length != needed:
            self.model.fail(f"{length} bytes of external data are declared, its shape needs {needed}", field)
        source.require(begin, length, field)
        self._take(str(source.path), begin, begin + length, field)
        return Part(source, begin, length)

    def _number(self, facts: dict[str, str], key: str, absent: int, field: str) -> int:
        text = facts.get(key, str(absent))
        if not text.isdecimal() or not text.isascii() or len(text) > len(str(1 << 64)):
            self.model.fail(f"the {key} of external data is a number from 0 on, got {text!r:.40}", field)
        return int(text)

    def _source(self, location: str, field: str) -> Source:
        if location not in self._open:
            self._open[location] = self._checked(location, field)
        return self._open[location]

    def _checked(self, location: str, field: str) -> Source:
        """Open the file of a location, which has to be an own file of the model's folder."""
        if self.folder is None:
            self.model.fail("external data needs a model that was read from a file", field)
        parts = PurePosixPath(location).parts
        plain = parts and location.isprintable() and "\\" not in location and not PureWindowsPath(location).drive
        if not plain or PurePosixPath(location).is_absolute() or ".." in parts:
            self.model.fail(f"external data lies at a plain relative path, got {location!r:.80}", field)
        path = self.folder
        for part in parts:
            path = path / part
            if path.is_symlink():
                self.model.fail(f"external data does not lie behind a link: {str(path)!r:.120}", field)
        try:
            source = Source(path, self.model.function, alone=True)
        except (FormatError, OSError) as error:
            reason = error.message if isinstance(error, FormatError) else error.strerror
            self.model.fail(f"external data cannot be read: {reason}: {location!r:.80}", field)
        if not path.resolve().is_relative_to(self.folder.resolve()):
            self.model.fail(f"external data leaves the model's folder: {location!r:.80}", field)
        return source

    def _take(self, file: str, begin: int, end: int, field: str) -> None:
        """Note a range; raise where it overlaps another one without being the same."""
        taken = self._taken.setdefault(os.fspath(file), [])
        place = bisect_right(taken, (begin, end))
        if begin == end or (place and taken[place - 1] == (begin, end)):
            return
        before = place and taken[place - 1][1] > begin
        after = place < len(taken) and taken[place][0] < end
        if before or after:
            self.model.fail("external data overlaps that of another tensor", field, begin)
        insort(taken, (begin, end))
