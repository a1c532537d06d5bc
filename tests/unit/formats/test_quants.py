import pytest

from lazulite import ArgumentError, Tensor
from lazulite.formats import quants
from lazulite.formats.quants import QUANTS

numpy, peer = pytest.importorskip("numpy"), pytest.importorskip("gguf")
SCALES = [0x0000, 0x0001, 0x03FF, 0x0400, 0x3C00, 0x7BFF, 0x7C00, 0x7E00, 0x8000, 0x8001, 0xBC00, 0xFC00, 0xFFFF]
"""Zero, subnormals, one, the largest, infinity and NaN in float16, with both signs."""
every = pytest.mark.parametrize("quant", QUANTS.values(), ids=lambda quant: quant.name)


def assert_equal_bits(quant, data):
    kind = peer.GGMLQuantizationType(quant.number)
    with numpy.errstate(all="ignore"):
        expected = peer.quants.dequantize(data, kind)
    found = quant.dequantize(Tensor(data), expected.shape).numpy()
    same = (expected.view(numpy.uint32) == found.view(numpy.uint32)) | (numpy.isnan(expected) & numpy.isnan(found))
    assert same.all(), (expected[~same][:5], found[~same][:5])


@every
def test_sizes_are_those_of_the_reference(quant):
    kind = peer.GGMLQuantizationType(quant.number)
    assert (kind.name, peer.GGML_QUANT_SIZES[kind]) == (quant.name, (quant.elements, quant.nbytes))


@every
def test_random_blocks_are_what_the_reference_makes_of_them(quant):
    data = numpy.random.default_rng(quant.number).integers(0, 256, (32, 4 * quant.nbytes), dtype=numpy.uint8)
    assert_equal_bits(quant, data)


@every
def test_extreme_blocks_are_what_the_reference_makes_of_them(quant):
    """All bits 0, all 1, alternating; and every special number at every place where a scale could be."""
    data = [numpy.full(quant.nbytes, byte, numpy.uint8) for byte in (0, 255, 0x55, 0xAA)]
    ends = {0, 2, quant.nbytes - 2, quant.nbytes - 4} if quant.elements > 32 else {0, 2}
    for at in sorted(ends):
        for scale in SCALES:
            for byte in (0, 255, 0x9C):
                block = numpy.full(quant.nbytes, byte, numpy.uint8)
                block[at : at + 2] = scale & 255, scale >> 8
                data.append(block)
    assert_equal_bits(quant, numpy.stack(data))


@pytest.mark.parametrize("name", ["MXFP4", "NVFP4"])
def test_every_scale_of_one_byte_is_what_the_reference_makes_of_it(name):
    quant = next(quant for quant in QUANTS.values() if quant.name == name)
    data = numpy.tile(numpy.arange(256, dtype=numpy.uint8)[:, None], (1, quant.nbytes))
    assert_equal_bits(quant, data)


def test_a_block_of_q4_1_is_decoded():
    """B121: scale 0.5, minimum 1, low nibbles 0 to 15, high nibbles 8."""
    block = numpy.frombuffer(
        numpy.array([0.5, 1.0], numpy.float16).tobytes() + bytes(0x80 | n for n in range(16)), numpy.uint8
    )
    found = QUANTS[3].dequantize(Tensor(block.copy()), (32,)).tolist()
    assert [n * 0.5 + 1 for n in range(16)] + [5.0] * 16 == found


def test_rows_keep_their_order():
    quant = QUANTS[2]
    data = numpy.random.default_rng(0).integers(0, 256, (3, 2, 2 * quant.nbytes), dtype=numpy.uint8)
    data[..., 1 :: quant.nbytes] &= 0x3B  # finite scales
    expected = peer.quants.dequantize(data.reshape(6, -1), peer.GGMLQuantizationType.Q4_0).reshape(3, 2, 64)
    assert expected.tolist() == quant.dequantize(Tensor(data), (3, 2, 64)).tolist()


def test_the_tables_of_lattices_need_the_package(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gguf.quants", None)
    with pytest.raises(ArgumentError, match="gguf, which is not installed"):
        quants._reference()
