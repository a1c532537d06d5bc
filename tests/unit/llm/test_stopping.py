"""Stop strings are found wherever the pieces of a text are cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from lazulite.llm.stopping import StopStrings


@given(st.text("ab"), st.lists(st.text("ab", min_size=1), max_size=3), st.lists(st.integers(0, 12)))
def test_what_is_shown_ends_before_the_first_stop_string(text: str, stops: list[str], cuts: list[int]) -> None:
    ends = [place for stop in stops if (place := text.find(stop)) >= 0]
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    stopping = StopStrings(stops)
    shown = "".join(stopping.add(text[a:b]) for a, b in pairwise(places)) + stopping.rest()

    assert bool(ends) == stopping.found
    # A stop string that began earlier may be complete only later: then the piece before it is out, up to its beginning.
    assert text.startswith(shown)
    assert (shown == text) if not ends else (len(shown) <= max(ends))


def test_a_text_that_only_looked_like_a_stop_string_comes_out() -> None:
    stopping = StopStrings(["STOP"])

    assert ["a", "", "STx"] == [stopping.add(piece) for piece in ("aS", "T", "x")]
