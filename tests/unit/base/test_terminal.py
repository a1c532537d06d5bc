import io

from hypothesis import given
from hypothesis import strategies as st

from lazulite.base.terminal import coloured, columns, duration, say, size_text


class Screen(io.StringIO):
    def isatty(self):
        return True


@given(st.lists(st.lists(st.text("ab", min_size=1, max_size=5), max_size=4)))
def test_a_column_begins_at_the_same_place_in_every_line(rows):
    lines = columns(rows, gap=" | ")
    for i in range(1, 4):
        assert len({len(" | ".join(line.split(" | ")[:i])) for line in lines if line.count(" | ") >= i}) <= 1


def test_sizes_and_times_have_the_unit_that_suits_them():
    assert ["0 B", "999 B", "1.00 KB", "123.46 MB"] == [size_text(n) for n in (0, 999, 1000, 123_456_789)]
    assert ["10.00 TB", "10000.00 TB"] == [size_text(10**13), size_text(10**16)]
    assert ["2.00 s", "2.00 ms", "2.00 us"] == [duration(t) for t in (2, 2e-3, 2e-6)]


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "ok" == coloured("ok", "green", io.StringIO())
    assert "\x1b[32mok\x1b[0m" == coloured("ok", "green", Screen())
    monkeypatch.setenv("NO_COLOR", "1")
    assert "ok" == coloured("ok", "green", Screen())


def test_remarks_go_to_stderr(capsys):
    say("busy")
    assert ("", "busy\n") == capsys.readouterr()
