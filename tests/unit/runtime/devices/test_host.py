import ctypes

from lazulite.runtime.devices import host


def test_the_limit_is_the_smaller_of_machine_and_control_group(tmp_path, monkeypatch):
    path = tmp_path / "memory.max"
    monkeypatch.setattr(host, "_GROUP_LIMITS", (str(path), str(tmp_path / "of another version")))
    machine = host.memory_limit()
    path.write_text("max\n")
    assert host.memory_limit() == machine
    path.write_text("123456\n")
    assert host.memory_limit() == 123456


def test_memory_at_an_address_is_seen_through_its_handle():
    words = (ctypes.c_uint16 * 3)(1, 2, 3)
    handle = host.external_memory(ctypes.addressof(words), 6, words)
    handle.owner[2] = 7
    assert (list(words), handle.shared, handle.size) == ([1, 7, 3], True, 6)
