"""Each method that counts gives the same for tensors on one, two, three and four devices, in every layout (A22)."""

from __future__ import annotations

import itertools
import warnings

import pytest

pytest.importorskip("torch", reason="notimpl: torch is not installed here")
pytest.importorskip("expecttest", reason="notimpl: expecttest is not installed here")

from lazulite import Tensor
from surface import rows, values
from surface.table import names_that_count, rows_of

OWN_MEMORY = {"custom_kernel", "from_dlpack", "device"}
"""Names whose rows make tensors on the default device and compare where these are."""
NAMES = [name for space, name in names_that_count() if space == "tensor" and name not in OWN_MEMORY]


@pytest.fixture
def spread(monkeypatch):
    """Every tensor of a sample lies on some devices, each split along another axis, or whole."""
    one_of_ours, on_this = values._one_of_ours, Tensor._tensor

    def over(count):
        turns = itertools.count()

        def laid_out(value):
            given = one_of_ours(value)
            if not isinstance(given, Tensor):
                return given
            layouts = [None, *range(len(given.shape))]
            return given.shard([f"CPU:{n}" for n in range(count)], layouts[-1 - next(turns) % len(layouts)])

        monkeypatch.setattr(values, "_one_of_ours", laid_out)

    def moved(self, function, other):
        return on_this(self, function, other.to(self.device) if isinstance(other, Tensor) else other)

    monkeypatch.setattr(Tensor, "_tensor", moved)  # what a row makes itself comes along
    monkeypatch.setattr(rows, "MOST", 1)
    monkeypatch.setattr(rows, "GRADIENTS", 0)
    return over


@pytest.mark.parametrize(("number", "name"), list(enumerate(NAMES)), ids=NAMES)
def test_a_name_means_the_same_on_several_devices(number, name, spread):
    """A22: the devices are one to four, in turn."""
    spread(1 + number % 4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the reference's own
        problems = [problem for tested in rows_of("tensor", name) for problem in rows.outcome(tested).problems]
    assert problems == []
