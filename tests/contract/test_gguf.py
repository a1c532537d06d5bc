import struct

from contract.format import LARGE, FormatContract
from lazulite.formats import gguf, gguf_writer
from support.model_files import gguf as made
from support.model_files import listed, pair, text, values

UINT8, UINT32, INT32, STRING, ARRAY = 0, 4, 5, 8, 9
F32, I8, I32 = 0, 24, 26


class TestGguf(FormatContract):
    suffix = ".gguf"

    @property
    def header(self):
        return len(self.sample()) - 40

    def read(self, path):
        return gguf.read(path).tensors()

    def write(self, tensors, path):
        gguf_writer.write(tensors, path)

    def sample(self):
        pairs = (
            pair("general.architecture", STRING, text("tiny")),
            pair("numbers", ARRAY, values(INT32, 2, struct.pack("<2i", 5, 6))),
            pair("words", ARRAY, values(STRING, 2, text("a") + text("bc"))),
        )
        tensors = listed("a", (2, 3), F32, 0), listed("b", (2,), I32, 32)
        return made(pairs, tensors, struct.pack("<6f8x2i", *range(6), -1, 7))

    def large(self, path):
        path.write_bytes(made((), (listed("large", (LARGE,), I8, 0),)))
        with path.open("r+b") as file:
            end = path.stat().st_size + LARGE
            file.truncate(end)
            file.seek(end - 1)
            file.write(b"\1")
