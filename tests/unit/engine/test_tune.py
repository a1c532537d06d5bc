"""The setting BEAM: results stay, what was found is kept on disk, and DEBUG tells what was tried."""

import json

import pytest

from lazulite import Context, GlobalCounters, Tensor
from lazulite.base.cache import disk_cache
from lazulite.engine import tune
from lazulite.ir.dtype import dtypes
from lazulite.ir.target import host
from lazulite.kernel.search import Found
from lazulite.kernel.steps import Split, Vectorize
from lazulite.runtime.registry import Device
from support.kernels import load, loop, matmul, param, sink, store

STEPS = (Split((0,), 16), Vectorize((0, 1)))
KEY = "ab" * 32


@pytest.fixture
def searches(monkeypatch, tmp_path):
    """The calls of a search that finds STEPS at once; the cache is empty."""
    calls = []

    def found(kernel, target, start, width, trial, is_over, tell):
        calls.append(width)
        tell(STEPS, 0.5)
        return Found(STEPS, 0.5, 1.0, 1)

    monkeypatch.setattr(tune, "search", found)
    monkeypatch.setattr(tune, "tuned", [])
    with Context(CACHE_DIR=tmp_path / "cache"):
        yield calls


def ask(start=()):
    return tune.tune(matmul(16, 16, 16), host(), Device["CPU"], start, KEY)


def test_the_outcome_of_a_search_is_kept_on_disk(searches):
    with Context(BEAM=3):
        assert STEPS == ask() == ask()
    assert [3] == searches
    assert [0.5, 0.5] == [each.after for each in tune.tuned]


@pytest.mark.parametrize("stored", [b"", b"{}", b"[1]", json.dumps({
    "kernel": "k", "steps": "fly 1", "before": 1.0, "after": 1.0, "tried": 1}).encode()])  # fmt: skip
def test_an_entry_that_makes_no_sense_is_searched_again(searches, stored):
    disk_cache().put("steps", KEY, stored)
    with Context(BEAM=1):
        assert STEPS == ask()
    assert [1] == searches


def test_without_a_cache_every_process_searches(searches):
    with Context(BEAM=1, CACHE=0):
        ask()
        ask()
    assert [1, 1] == searches


def test_debug_tells_what_was_tried(searches, capsys):
    with Context(BEAM=1, DEBUG=3):
        ask()
    told = capsys.readouterr().err
    assert "500.00 ms  split 0 16; vectorize 0.1" in told
    assert "tuned max_16x16_dot16: 1.00 s -> 500.00 ms, 1 tried, 0 refused, 0 wrong" in told


def test_a_program_computes_the_same_with_a_search_and_touches_no_tensor(tmp_path):
    x = Tensor([[float(i * 7 % 11) for i in range(40)] for _ in range(30)]).realize()
    want, before = (x.softmax(-1) * 2).tolist(), x.tolist()
    with Context(BEAM=2, BEAM_SECONDS=1, CACHE_DIR=tmp_path):
        count = GlobalCounters.kernel_count
        got = (x.softmax(-1) * 2).realize()
        assert 1 == GlobalCounters.kernel_count - count
    assert before == x.tolist()
    for row, expected in zip(got.tolist(), want, strict=True):
        assert expected == pytest.approx(row, rel=1e-5)


def test_a_kernel_whose_stores_have_an_order_keeps_its_steps(searches):
    memory, places = param(0, 4, dtypes.int32), param(1, 16, dtypes.int32)
    place = load(places, loop(0, 16)).cast(dtypes.index)
    counting = sink(store(memory, place, load(memory, place) + 1))
    with Context(BEAM=3):
        assert STEPS[:1] == tune.tune(counting, host(), Device["CPU"], STEPS[:1], KEY)
    assert not searches
