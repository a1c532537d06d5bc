import struct

import pytest

from contract.format import LARGE, FormatContract
from lazulite.formats import safetensors
from support.model_files import described
from support.model_files import safetensors as made

reference = pytest.importorskip("safetensors")


class TestSafetensors(FormatContract):
    suffix = ".safetensors"
    header = 140

    def read(self, path):
        return safetensors.read(path)

    def write(self, tensors, path):
        safetensors.write(tensors, path)
        with reference.safe_open(path, "np") as file:
            assert sorted(tensors) == sorted(file.keys())

    def sample(self):
        header = {"a": described("F32", [2, 3], 0, 24), "b": described("I32", [2], 24, 32)}
        return made(header, struct.pack("<6f2i", *range(6), -1, 7))

    def large(self, path):
        path.write_bytes(made({"large": described("U8", [LARGE], 0, LARGE)}))
        with path.open("r+b") as file:
            end = path.stat().st_size + LARGE
            file.truncate(end)
            file.seek(end - 1)
            file.write(b"\1")
