"""Exported sums of products are MatMul and Conv, whatever the order of their axes, and agree."""

from __future__ import annotations

import pytest

from lazulite import Tensor, Variable
from support.onnx_export import agrees, operators

pytestmark = pytest.mark.filterwarnings("ignore")  # those of the reference implementation


def random(*shape: int) -> Tensor:
    return Tensor.randn(*shape).realize()


@pytest.mark.parametrize("formula, left, right", [
    ("ij,jk->ik", (2, 3), (3, 4)), ("ij,kj->ki", (2, 3), (4, 3)), ("bij,bkj->bik", (2, 3, 4), (2, 5, 4)),
    ("bij,bkj->ikb", (2, 3, 4), (2, 5, 4)), ("bij,cij->cb", (2, 3, 4), (5, 3, 4)),
    ("abij,jk->abik", (2, 3, 4, 5), (5, 6)), ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("bqhd,bkhd->bhqk", (2, 4, 3, 5), (2, 6, 3, 5)), ("ij,j->i", (3, 4), (4,)),
    ("i,ij->j", (3,), (3, 4)), ("aij,bkj->aibk", (2, 3, 4), (5, 6, 4)),
    ("bi,bij->bj", (2, 3), (2, 3, 4)), ("ibj,bjk->kbi", (2, 3, 4), (3, 4, 5)),
])  # fmt: skip
def test_a_product_in_any_layout_is_one_matmul(formula: str, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    found = operators(agrees(lambda x, y: Tensor.einsum(formula, x, y), random(*left), random(*right), within=1e-5))

    assert (1, 0, 0) == (found["MatMul"], found["Mul"], found["ReduceSum"])


@pytest.mark.parametrize("kind", ["int32", "int64", "float64", "float16"])
def test_products_of_other_numbers_are_too(kind: str) -> None:
    x, y = [(random(*shape) * 5).cast(kind).realize() for shape in ((3, 4), (4, 2))]
    found = operators(agrees(lambda x, y: x @ y, x, y, within=0.02 if kind == "float16" else 1e-6))

    assert 1 == found["MatMul"]


def test_a_sum_of_squares_is_no_product_of_matrices() -> None:
    found = operators(agrees(lambda x: ((x * x).sum(-1), (x[0] * x[1]).sum()), random(3, 4), within=1e-5))

    assert (0, 2) == (found["MatMul"], found["ReduceSum"])


@pytest.mark.parametrize("image, weight, options", [
    ((2, 3, 9, 9), (4, 3, 3, 3), {}), ((2, 3, 9, 9), (4, 3, 3, 3), {"stride": 2, "padding": 1}),
    ((2, 3, 9, 8), (4, 3, 2, 3), {"dilation": 2, "padding": (1, 2, 0, 1)}), ((1, 4, 7, 7), (6, 2, 3, 3), {"groups": 2}),
    ((2, 4, 7, 7), (4, 1, 3, 3), {"groups": 4, "padding": 1}), ((2, 4, 7, 7), (8, 1, 3, 3), {"groups": 4}),
    ((1, 3, 9), (4, 3, 3), {"stride": 2}), ((1, 2, 5, 6, 7), (4, 2, 3, 2, 3), {"stride": (1, 2, 1), "padding": 1}),
    ((2, 3, 5, 5), (4, 3, 1, 1), {}), ((2, 3, 5, 5), (4, 3, 5, 1), {}), ((2, 1, 5, 5), (1, 1, 3, 3), {}),
])  # fmt: skip
def test_a_convolution_is_one_conv(image: tuple[int, ...], weight: tuple[int, ...], options: dict[str, int]) -> None:
    model = agrees(lambda x, w: x.conv2d(w, **options), random(*image), random(*weight), within=1e-5)

    assert {"Conv": 1} == operators(model)


def test_windows_of_numbers_that_conv_lacks_are_multiplied_as_matrices() -> None:
    x, w = random(1, 2, 5, 5).double().realize(), random(3, 2, 3, 3).double().realize()
    found = operators(agrees(lambda x, w: x.conv2d(w), x, w, within=1e-9))

    assert (0, 1) == (found["Conv"], found["MatMul"])


def test_what_only_resembles_a_convolution_agrees() -> None:
    x, w = random(2, 3, 8, 8), random(4, 3, 3, 3)
    agrees(lambda x, w: x.flip(2).conv2d(w), x, w, within=1e-5)
    agrees(lambda x, w: x[:, :, 1:7].conv2d(w, padding=1), x, w, within=1e-5)
    agrees(lambda x, w: x.pad((1, 1)).shrink_to(2, 3, 8, 9).conv2d(w), x, w, within=1e-5)
    agrees(lambda x, w: x.conv_transpose2d(w.transpose(0, 1), stride=2), x, w, within=1e-5)


def test_images_of_any_size_are_convolved_too() -> None:
    size, images = Variable("size", 3, 8), random(2, 3, 8, 8)
    narrow, wide = random(4, 3, 1, 1), random(4, 3, 3, 3)
    example, others = (images[:, :, : size.bind(4)],), (images[:, :, :6].contiguous(),)

    assert 1 == operators(agrees(lambda x: x.conv2d(narrow), *example, others=others, within=1e-5))["Conv"]
    agrees(lambda x: x.conv2d(wide, padding=1), *example, others=others, within=1e-5)
