"""The collector is off inside, and afterwards as it was."""

from __future__ import annotations

import gc

import pytest

from lazulite.base.collector import collector_paused


def test_the_collector_is_paused_and_left_as_it_was() -> None:
    assert gc.isenabled()
    with collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_is_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_collector_is_switched_on_again_after_an_error() -> None:
    with pytest.raises(ValueError), collector_paused():
        raise ValueError
    assert gc.isenabled()
