"""The helpers do what their names say."""

from __future__ import annotations

import gc
import gzip
import sys
from pathlib import Path

import numpy as np
import pytest

from lazulite.interop.tinygrad import helpers


def test_collections() -> None:
    assert 24 == helpers.prod([2, 3, 4]) and 1 == helpers.prod(())
    assert [3, 1] == helpers.dedup([3, 1, 3])
    assert (1, 2) == helpers.argfix([1, 2]) == helpers.argfix(1, 2)
    with pytest.raises(ValueError, match="bad arg"):
        helpers.argfix([1], 2)
    assert (1, 2, 0) == helpers.argsort((3, 1, 2))
    assert helpers.all_same([]) and helpers.all_same([1, 1]) and not helpers.all_same([1, 2])
    assert helpers.all_int((1, 2)) and not helpers.all_int((1, 2.0))
    assert [1, 2, 3] == helpers.flatten([[1], [2, 3]]) == helpers.fully_flatten([1, [2, [3]]])
    assert ["ab", 5] == helpers.fully_flatten(["ab", np.array(5)])
    assert (2, 3) == helpers.get_shape([[1, 2, 3], [4, 5, 6]])
    with pytest.raises(ValueError, match="inhomogeneous"):
        helpers.get_shape([[1], [2, 3]])
    assert {"a": 1, "b": 2} == helpers.merge_dicts([{"a": 1}, {"b": 2, "a": 1}])
    with pytest.raises(RuntimeError, match="different values"):
        helpers.merge_dicts([{"a": 1}, {"a": 2}])
    assert ([2, 3], [1]) == helpers.partition([1, 2, 3], lambda x: x > 1)
    assert 7 == helpers.get_single_element([7]) == helpers.unwrap(7)
    for wrong in (lambda: helpers.get_single_element([1, 2]), lambda: helpers.unwrap(None)):
        with pytest.raises(AssertionError):
            wrong()
    assert 5 == helpers.get_child({"a": [0, {"b": 5}]}, "a.1.b")
    assert "real" == helpers.get_child({"a": type("T", (), {"b": "real"})}, "a.b")
    assert (2, 2) == helpers.make_tuple(2, 2) == helpers.make_tuple([2, 2], 2)
    assert (3,) == helpers.to_tuple(3) == helpers.to_tuple((3,))
    assert ((3, 4), (1, 2)) == helpers.flat_to_grouped((1, 2, 3, 4))


def test_numbers_and_text() -> None:
    assert (4, 4, 8, 4) == (
        helpers.ceildiv(7, 2),
        helpers.ceildiv(7.0, 2),
        helpers.round_up(5, 4),
        helpers.round_down(7, 4),
    )
    assert [1, 1, 2, 4, 8] == [helpers.next_power2(x) for x in (0, 1, 2, 3, 5)]
    assert "\033[31mx\033[0m" == helpers.colored("x", "red")
    assert "\033[91mx\033[0m" == helpers.colored("x", "RED")
    assert "x" == helpers.ansistrip(helpers.colored("x", "red")) == helpers.colored("x", None)
    assert 1 == helpers.ansilen(helpers.colored("x", "red"))
    assert "   1.00x" == helpers.ansistrip(helpers.colorize_float(1.0))
    assert ["   20.00s ", "   20.00ms", "   20.00us"] == [helpers.time_to_str(t) for t in (20, 0.02, 2e-5)]
    assert ["2.00 GB", "3.00 KB", "5 B"] == [helpers.size_to_str(s) for s in (2 << 30, 3 << 10, 5)]
    assert ["1 dog", "2 dogs"] == [helpers.pluralize("dog", n) for n in (1, 2)]
    assert ["a+b", "(a)*(b)", "(a))(", "a"] == [helpers.strip_parens(t) for t in ("(a+b)", "(a)*(b)", "(a))(", "a")]


def test_time_and_memory(capsys: pytest.CaptureFixture[str]) -> None:
    with helpers.Timing("took ", on_exit=lambda ns: f", {ns > 0}"):
        pass
    with helpers.Timing(enabled=False):
        pass
    said = capsys.readouterr().out
    assert said.startswith("took ") and said.endswith("ms, True\n") and said.count("ms") == 1
    with helpers.disable_gc():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_progress_goes_on_without_a_package_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    with helpers.tqdm([1, 2]) as bar:
        assert [1, 2] == list(bar)
        bar.set_description("far")
        bar.update(2)
        bar.write("said")
    assert 2 == bar.n and [0, 1] == list(helpers.trange(2)) and "said\n" == capsys.readouterr().out


def test_files_are_fetched_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "numbers.gz"
    source.write_bytes(gzip.compress(b"numbers"))
    address = source.as_uri()

    assert source == helpers.fetch(str(source))
    found = helpers.fetch(address, gunzip=True)
    assert b"numbers" == found.read_bytes()
    source.unlink()
    assert found == helpers.fetch(address, gunzip=True)
    with pytest.raises(OSError):
        helpers.fetch(address, gunzip=True, allow_caching=False)
    assert helpers.temp("x").endswith("/x") and helpers.temp("x", append_user=True) != helpers.temp("x")
