import hashlib
import multiprocessing
import os
import stat
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lazulite.base import cache
from lazulite.base.cache import DiskCache, default_directory, disk_cache
from lazulite.base.settings import Context


def key(number):
    return hashlib.sha256(str(number).encode()).hexdigest()


@pytest.fixture
def store(tmp_path):
    return DiskCache(tmp_path / "store", limit=10_000)


def path_of(store, number, kind="program"):
    return store.directory / kind / key(number)


@given(value=st.binary(max_size=200))
def test_what_was_put_is_found_by_another_process_too(tmp_path_factory, value):
    directory = tmp_path_factory.mktemp("cache") / "store"
    DiskCache(directory).put("program", key(1), value)
    assert DiskCache(directory).get("program", key(1)) == value
    assert DiskCache(directory).get("plan", key(1)) is None
    assert DiskCache(directory).get("program", key(2)) is None


def test_directories_and_files_are_for_this_user_only(store):
    store.put("program", key(1), b"value")
    modes = [
        stat.S_IMODE(os.lstat(p).st_mode) for p in (store.directory, store.directory / "program", path_of(store, 1))
    ]
    assert modes == [0o700, 0o700, 0o600]


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_ignored(store, mode):
    store.put("program", key(1), b"value")
    path_of(store, 1).chmod(mode)
    assert store.get("program", key(1)) is None


@pytest.mark.parametrize("inner", ["", "program"])
def test_a_directory_that_others_may_write_is_not_used(store, inner):
    store.put("program", key(1), b"value")
    (store.directory / inner).chmod(0o770)
    assert store.get("program", key(1)) is None
    store.put("program", key(2), b"value")
    assert not path_of(store, 2).exists()


def test_files_of_another_user_are_ignored(store, monkeypatch):
    store.put("program", key(1), b"value")
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert store.get("program", key(1)) is None
    store.put("program", key(2), b"value")
    assert not path_of(store, 2).exists()


@given(st.data())
def test_a_truncated_or_damaged_file_is_ignored(tmp_path_factory, data):
    store = DiskCache(tmp_path_factory.mktemp("cache") / "store")
    store.put("program", key(1), b"some machine code")
    path = path_of(store, 1)
    whole = path.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    damaged = data.draw(
        st.sampled_from([whole[:at], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], whole + b"x"])
    )
    path.write_bytes(damaged)
    assert store.get("program", key(1)) is None
    store.put("program", key(1), b"made again")
    assert store.get("program", key(1)) == b"made again"


def test_links_pipes_and_directories_in_place_of_a_file_are_ignored(store, tmp_path):
    store.put("program", key(1), b"value")
    good = path_of(store, 1).read_bytes()
    (tmp_path / "elsewhere").write_bytes(good)
    (tmp_path / "elsewhere").chmod(0o600)
    path_of(store, 2).symlink_to(tmp_path / "elsewhere")
    os.mkfifo(path_of(store, 3), 0o600)
    path_of(store, 4).mkdir(0o700)
    assert [None] * 3 == [store.get("program", key(n)) for n in (2, 3, 4)]
    store.put("program", key(4), b"value")
    assert store.get("program", key(4)) is None
    assert not [path for path in (store.directory / "program").iterdir() if path.name.startswith(".")]


def test_a_linked_directory_is_not_used(tmp_path):
    DiskCache(tmp_path / "real").put("program", key(1), b"value")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert DiskCache(tmp_path / "link").get("program", key(1)) is None


def test_what_was_unused_for_longest_goes_when_the_store_is_full(store):
    now = time.time()
    for number in range(9):
        store.put("program", key(number), bytes(1000))
        os.utime(path_of(store, number), (now, now - 1000 + number))
    assert store.get("program", key(0)) is not None
    store.put("program", key(9), bytes(1000))
    left = {n for n in range(10) if path_of(store, n).exists()}
    assert {0, 9} <= left
    assert {1, 2} & left == set()
    assert sum(path.stat().st_size for path in (store.directory / "program").iterdir()) <= 10_000


def test_what_a_dead_process_left_unfinished_is_removed_but_a_fresh_file_is_not(store):
    store.put("program", key(1), b"value")
    old, fresh, foreign = (store.directory / "program" / name for name in (".old", ".fresh", "README"))
    for path in (old, fresh, foreign):
        path.write_bytes(b"part")
    os.utime(old, (0, 0))
    os.utime(foreign, (0, 0))
    DiskCache(store.directory, limit=200).put("program", key(2), bytes(100))
    assert [old.exists(), fresh.exists(), foreign.exists()] == [False, True, True]


def test_a_value_larger_than_the_store_is_not_kept(store):
    store.put("program", key(1), bytes(20_000))
    assert store.get("program", key(1)) is None


def test_a_store_that_cannot_be_written_stores_nothing(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    store = DiskCache(tmp_path / "file" / "store")
    store.put("program", key(1), b"value")
    assert store.get("program", key(1)) is None


def test_clear_removes_every_entry(store):
    store.clear()  # nothing was ever stored
    for kind in ("plan", "program"):
        store.put(kind, key(1), b"value")
    store.clear()
    assert [None, None] == [store.get(kind, key(1)) for kind in ("plan", "program")]


@pytest.mark.parametrize(
    ("kind", "name"), [("program", "../" + key(1)), ("program", "abc"), ("../x", key(1)), ("", key(1))]
)
def test_a_key_is_nothing_but_a_hash(store, kind, name):
    with pytest.raises(ValueError, match="SHA-256"):
        store.get(kind, name)


def hammer(directory, seed):
    store = DiskCache(directory, limit=30_000)
    for turn in range(150):
        number = (turn * 7 + seed) % 20
        store.put("program", key(number), bytes([number]) * 3000)
        value = store.get("program", key((number + 3) % 20))
        if value is not None and value != bytes([(number + 3) % 20]) * 3000:
            os._exit(1)
    os._exit(0)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # helper threads of other tests may be alive
def test_processes_that_write_at_once_never_see_a_torn_file(tmp_path):
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=hammer, args=(tmp_path / "store", seed)) for seed in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [0, 0, 0] == [process.exitcode for process in processes]
    assert not [p for p in (tmp_path / "store" / "program").iterdir() if p.name.startswith(".")]


def test_the_settings_say_where_it_is_and_whether_it_is(tmp_path, monkeypatch):
    with Context(CACHE_DIR=tmp_path / "mine"):
        assert disk_cache() is disk_cache()
        assert disk_cache().directory == tmp_path / "mine"
    with Context(CACHE=0):
        assert disk_cache() is None
    with Context(CACHE_DIR=""):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert default_directory() == tmp_path / "lazulite"
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert default_directory() == tmp_path / ".cache" / "lazulite"


def test_a_user_without_a_home_has_no_store(monkeypatch):
    def no_home():
        raise RuntimeError("no home directory")

    monkeypatch.setattr(cache, "default_directory", no_home)
    with Context(CACHE=1):
        assert disk_cache() is None
