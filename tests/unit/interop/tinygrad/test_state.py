"""The state of a model by tinygrad's names."""

from __future__ import annotations

from pathlib import Path

from lazulite import Tensor
from lazulite.interop.tinygrad import state
from lazulite.nn.state import safe_load, safe_save


def test_tensors_go_through_a_file(tmp_path: Path) -> None:
    path = tmp_path / "tensors.safetensors"
    model, other = ({"w": Tensor([1.0, 2.0]), "n": [Tensor([3])]}, {"w": Tensor([0.0, 0.0]), "n": [Tensor([0])]})
    safe_save(state.get_state_dict(model), path, {"made": "by hand"})
    loaded = safe_load(path)

    written = state.load_state_dict(other, loaded, verbose=False, consume=True)

    assert {} == loaded and 2 == len(written) == len(written)
    assert [1.0, 2.0] == other["w"].tolist()
