import io

import pytest

from contract.format import LARGE, FormatContract
from lazulite.formats import npy
from lazulite.formats.source import Source

numpy = pytest.importorskip("numpy")


class TestNpz(FormatContract):
    suffix = ".npz"
    never = {"large": "NPY has its own test of that"}

    @property
    def header(self):
        return len(self.sample())

    def read(self, path):
        return npy.read_archive(Source(path))

    def write(self, tensors, path):
        npy.write_archive(tensors, path)

    def sample(self):
        target = io.BytesIO()
        numpy.savez(target, a=numpy.arange(6, dtype="f4").reshape(2, 3), b=numpy.array([-1, 7], "i4"))
        return target.getvalue()


class TestNpy(FormatContract):
    suffix = ".npy"
    header = 128

    def read(self, path):
        return {"b": npy.read(path), "large": npy.read(path)} if path.stat().st_size > LARGE else {"b": npy.read(path)}

    def write(self, tensors, path):
        npy.write(tensors["b"], path)

    def expected(self):
        return {"b": [-1, 7]}

    def sample(self):
        target = io.BytesIO()
        numpy.save(target, numpy.array([-1, 7], "i4"))
        return target.getvalue()

    def large(self, path):
        array = numpy.lib.format.open_memmap(path, "w+", "u1", (LARGE,))
        array[-1] = 1
