"""Captured functions in files: they do what the function does, without it, or are refused."""

import os
import subprocess
import sys

import pytest

from lazulite import CaptureError, Context, Tensor, jit, load_captured


def saved(function, path, *arguments):
    """The function captured with these arguments, and the one that its file gives."""
    captured = jit(function)
    for _ in range(2):
        captured(*arguments)
    captured.save(path)
    return captured, load_captured(path)


def test_a_loaded_function_does_what_the_function_does(tmp_path):
    """A24"""
    _, loaded = saved(lambda x, y: (x @ y).relu() + 1, tmp_path / "f", Tensor.ones(3, 4), Tensor.ones(4, 2))
    x, y = Tensor.rand(3, 4), Tensor.rand(4, 2)

    assert ((x @ y).relu() + 1).tolist() == loaded(x, y).tolist()
    assert repr(loaded) == "<saved <lambda>: 1 captured>"


def test_containers_numbers_and_keywords_select_the_call(tmp_path):
    def scaled(pair, *, by, names=None):
        return {"sum": pair[0] * by + pair["b"] if isinstance(pair, dict) else pair[0] * by + pair[1], "by": by}

    captured = jit(scaled)
    a, b = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    for by in (2.0, -0.0):
        for _ in range(2):
            captured([a, b], by=by)
    captured.save(tmp_path / "f")
    loaded = load_captured(tmp_path / "f")

    assert ([5.0, 8.0], 2.0) == (loaded([a, b], by=2.0)["sum"].tolist(), loaded([a, b], by=2.0)["by"])
    assert [3.0, 4.0] == loaded([b, b + 0 - b + b], by=-0.0)["sum"].tolist()
    for other in ({"pair": [a, b], "by": 0.0}, {"pair": (a, b), "by": 2.0}, {"pair": [a, Tensor([1.0])], "by": 2.0}):
        with pytest.raises(CaptureError, match="scaled: no captured call takes"):
            loaded(**other)
    with pytest.raises(CaptureError, match="a object among the arguments was not captured"):
        loaded(object())


def test_state_among_the_arguments_advances(tmp_path):
    def step(state, x):
        state["count"] += 1
        state["sum"][0:2] = state["sum"][0:2] + x
        return x

    def fresh():
        return {"count": Tensor([0]).realize(), "sum": Tensor([0.0, 0.0, 7.0]).realize()}

    _, loaded = saved(step, tmp_path / "f", fresh(), Tensor([1.0, 2.0]).realize())
    state, x = fresh(), Tensor([1.0, 2.0]).realize()
    before = state["sum"] * 1
    for _ in range(3):
        assert x.tolist() == loaded(state, x).tolist()

    assert ([3], [3.0, 6.0, 7.0]) == (state["count"].tolist(), state["sum"].tolist())
    assert [0.0, 0.0, 7.0] == before.tolist()


def test_random_numbers_and_data_of_the_host_come_along(tmp_path):
    _, loaded = saved(lambda x: x + Tensor.rand(3) + Tensor([1.0, 2.0, 3.0]), tmp_path / "f", Tensor([0.0, 0.0, 0.0]))
    x = Tensor([5.0, 5.0, 5.0]).realize()
    Tensor.manual_seed(4)
    expected = [(x + Tensor.rand(3) + Tensor([1.0, 2.0, 3.0])).tolist() for _ in range(3)]
    Tensor.manual_seed(4)

    assert expected == [loaded(x).tolist() for _ in range(3)]


@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_several_kernels_views_and_fills_on_a_device(tmp_path, device):
    def function(x):
        total = x.sum(axis=0)
        return x - total.max(), total, Tensor.zeros(2, device=x.device).contiguous(), x[1:]

    _, loaded = saved(function, tmp_path / "f", Tensor([[1.0, 2.0], [3.0, 5.0]], device=device).realize())
    x = Tensor([[2.0, 2.0], [3.0, 6.0]], device=device).realize()

    assert [t.tolist() for t in function(x)] == [t.tolist() for t in loaded(x)]


def test_another_process_needs_neither_the_function_nor_a_compiler(tmp_path):
    saved(lambda x: (x * 3).sum() + x, tmp_path / "f", Tensor([1.0, 2.0]))
    program = (
        "import sys; from lazulite import GlobalCounters, Tensor, load_captured\n"
        f"print(load_captured({str(tmp_path / 'f')!r})(Tensor([1.0, 3.0])).tolist())\n"
        "print(GlobalCounters.programs_compiled, GlobalCounters.schedules_built, 'llvmlite' in sys.modules)"
    )
    without_cache = {**os.environ, "LAZULITE_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=without_cache
    )

    assert "[13.0, 15.0]\n0 0 False\n" == done.stdout


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    weight, x = Tensor([2.0]), Tensor([1.0], requires_grad=False)
    with pytest.raises(CaptureError, match="the function reaches weight, which is no argument"):
        saved(lambda x: x * weight, tmp_path / "f", x)
    with pytest.raises(CaptureError, match="remembers how it was made"):
        saved(lambda x: x * 2, tmp_path / "f", Tensor([1.0], requires_grad=True))
    with pytest.raises(CaptureError, match="nothing of <lambda> is captured yet"):
        jit(lambda x: x).save(tmp_path / "f")
    with pytest.raises(CaptureError, match="a DType cannot be saved"):
        saved(lambda x: (x + 1, x.dtype), tmp_path / "f", x)
    with pytest.raises(CaptureError, match="puts tensors into objects"):
        saved(lambda places: places.update(a=places["a"] + 1), tmp_path / "f", {"a": x})
    assert not (tmp_path / "f").exists()


def test_the_same_arguments_with_other_surroundings_are_refused(tmp_path):
    dropped = jit(lambda x: x.dropout(0.5) + 1)
    for training in (True, False):
        with Context(TRAINING=training):
            for _ in range(2):
                dropped(Tensor([1.0]))
    with pytest.raises(CaptureError, match="captured several times for the same arguments"):
        dropped.save(tmp_path / "f")


def test_a_loaded_function_is_no_part_of_a_captured_one(tmp_path):
    _, loaded = saved(lambda x: x + 1, tmp_path / "f", Tensor([1.0]))

    @jit
    def outer(x):
        return loaded(x) + 1

    with pytest.raises(CaptureError, match="outer is captured, and what was loaded from a file cannot become a part"):
        outer(Tensor([1.0]))


def test_tensors_that_share_memory_are_another_call(tmp_path):
    a, b = Tensor([1.0]).realize(), Tensor([2.0]).realize()
    _, loaded = saved(lambda x, y: x + y, tmp_path / "f", a, b)
    with pytest.raises(CaptureError, match="no captured call takes"):
        loaded(a, a)
