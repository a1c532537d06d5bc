import struct

from contract.format import FormatContract
from lazulite.formats import torch
from support.checkpoints import Global, Persistent, pickled
from support.model_files import checkpoint


class TestTorchArchive(FormatContract):
    suffix = ".pt"
    never = {"write": "checkpoints are read, never written", "large": "zip archives of 4 GB need a writer of zip64"}

    @property
    def header(self):
        return len(self.sample())

    def read(self, path):
        return torch.read(path)

    def sample(self):
        rebuild = Global("torch._utils", "_rebuild_tensor_v2")
        a = Persistent(("storage", Global("torch", "FloatStorage"), "0", "cpu", 6))
        b = Persistent(("storage", Global("torch", "IntStorage"), "1", "cpu", 2))
        value = {"a": rebuild(a, 0, (2, 3), (3, 1), False, {}), "b": rebuild(b, 0, (2,), (1,), False, {})}
        return checkpoint(pickled(value), {"0": struct.pack("<6f", *range(6)), "1": struct.pack("<2i", -1, 7)})
