import os
import subprocess
import sys

import pytest

from lazulite.base.settings import Context
from lazulite.runtime import support_code as module
from lazulite.runtime.fork_join import Block, fork_join

FROM_DISK = """
import sys
from lazulite.runtime.fork_join import fork_join
assert fork_join() is not None
print("llvmlite" in sys.modules)
"""


def test_a_second_process_finds_the_functions_on_disk(tmp_path):
    settings = os.environ | {"LAZULITE_CACHE_DIR": str(tmp_path / "cache")}
    said = [
        subprocess.run(
            [sys.executable, "-c", FROM_DISK], env=settings, capture_output=True, text=True, timeout=60, check=False
        )
        for _ in range(2)
    ]
    assert [(0, "", "True\n"), (0, "", "False\n")] == [(s.returncode, s.stderr, s.stdout) for s in said]


def test_without_llvm_and_cache_there_are_no_functions(monkeypatch):
    def missing(source):
        raise ImportError("No module named 'llvmlite'")

    monkeypatch.setattr(module, "_compile", missing)
    monkeypatch.setattr(module, "CODE", {})
    with Context(CACHE=0):
        assert fork_join.__wrapped__() is None


def test_without_a_cache_the_functions_are_compiled():
    with Context(CACHE=0):
        assert fork_join.__wrapped__() is not None


def test_a_block_begins_a_cache_line():
    assert [0] * 10 == [block.pointer.value % 64 for block in [Block() for _ in range(10)]]


def test_a_helper_of_a_stopped_pool_returns_at_once():
    functions, block = fork_join(), Block()
    if functions is None:
        pytest.fail("LLVM is needed here")
    functions.stop(block.pointer)
    functions.serve(block.pointer, 1)
