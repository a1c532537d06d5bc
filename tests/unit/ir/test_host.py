"""What the machine says about itself, and that permission is asked before tiles are used."""

import pytest

from lazulite.ir import host as here
from lazulite.ir import target as targets

FLAGS = ("fpu", "pni", "avx", "avx2", "fma", "avx512f", "amx_tile", "amx_bf16", "amx_int8")


@pytest.fixture
def machine(monkeypatch):
    """A processor with tiles, whose system answers as told."""

    def describe(permission: bool) -> list[None]:
        asked: list[None] = []
        monkeypatch.setattr(targets, "flags", lambda: FLAGS)
        monkeypatch.setattr(targets, "tile_permission", lambda: asked.append(None) or permission)
        targets.host.cache_clear()
        return asked

    yield describe
    targets.host.cache_clear()


def test_units_that_the_system_permits_are_used(machine):
    asked = machine(permission=True)

    assert "amx-bf16" in targets.host().features and len(targets.host().matrix) == 5
    assert [None] == asked


def test_a_system_that_refuses_leaves_vectors(machine):
    machine(permission=False)

    assert not any("amx" in feature for feature in targets.host().features)
    assert () == targets.host().matrix


def test_nobody_is_asked_for_what_is_switched_off(machine):
    asked = machine(permission=True)

    assert () == targets.host("-amx").matrix
    assert [] == asked


def test_programs_for_units_have_keys_of_their_own(machine):
    machine(permission=True)
    keys = {targets.host().key, targets.host("-amx").key, targets.host("-amx_bf16").key,
            targets.host().with_vectors_only.key}  # fmt: skip

    assert 4 == len(keys)


def test_a_processor_without_tiles_is_refused_by_the_system():
    assert "amx_tile" in here.flags() or not here.tile_permission()
