"""A binary is data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.emit.base import Binary

binaries = st.builds(Binary, st.text(), st.binary(), st.sampled_from(["elf", "text"]), st.integers(0), st.integers(1))


@given(binaries)
def test_a_binary_survives_json(binary):
    assert binary == Binary.from_json(binary.to_json())


@given(binaries, binaries)
def test_different_binaries_have_different_keys(one, other):
    assert (one == other) == (one.key == other.key)


@pytest.mark.parametrize("change", [{"code": None}, {"kind": "exe"}, {"scratch_bytes": "1"}, {"code": "?"}])
def test_damaged_fields_are_refused(change):
    data = Binary("k", b"", "elf").to_json() | change
    data = {name: value for name, value in data.items() if value is not None}
    with pytest.raises(ValueError):
        Binary.from_json(data)
