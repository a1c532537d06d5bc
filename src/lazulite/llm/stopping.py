"""Stop strings in a text that comes in pieces."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Gives out a text as far as it cannot be the beginning of a stop string; `found` once one was met.

    >>> stops = StopStrings(["END"])
    >>> stops.add("one E"), stops.add("NDless")
    ('one ', '')
    >>> stops.found
    True
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self.stops = [stop for stop in stops if stop]
        self.held = ""
        self.found = False

    def add(self, text: str) -> str:
        """What of the text so far may be shown now."""
        if self.found:
            return ""
        self.held += text
        places = [place for stop in self.stops if (place := self.held.find(stop)) >= 0]
        if places:
            self.found = True
            shown, self.held = self.held[: min(places)], ""
            return shown
        keep = max((self._overlap(stop) for stop in self.stops), default=0)
        shown, self.held = self.held[: len(self.held) - keep], self.held[len(self.held) - keep :]
        return shown

    def rest(self) -> str:
        """What was held back, once nothing follows."""
        shown, self.held = self.held, ""
        return shown

    def _overlap(self, stop: str) -> int:
        """How many characters at the end could begin a stop string."""
        longest = min(len(stop) - 1, len(self.held))
        return next((size for size in range(longest, 0, -1) if self.held.endswith(stop[:size])), 0)
