"""A tensor on several devices is the tensor on one: in values, writes, gradients and captured functions."""

import pickle

import numpy as np
import pytest

from lazulite import (
    ArgumentError,
    AxisError,
    CaptureError,
    Context,
    DeviceError,
    GlobalCounters,
    ShapeError,
    Tensor,
    Variable,
    dtypes,
    jit,
    nn,
)
from lazulite.engine.spread import layout_of
from support.capture import captured

DEVICES = tuple(f"CPU:{number}" for number in range(4))
TWO = DEVICES[:2]


def whole(*shape, dtype=np.float32):
    return (np.arange(int(np.prod(shape))) * 7 % 11 - 4).reshape(shape).astype(dtype)


def layouts(rank):
    return [None, *range(rank)]


# --- where a tensor is ---------------------------------------------------------------------------


def test_the_device_is_the_tuple_of_names():
    x = Tensor([1, 2, 3]).shard(TWO, 0)
    assert ("CPU", "CPU:1") == x.device == (x + 1).device == x.realize().device
    assert "device=('CPU', 'CPU:1')" in repr(x)


def test_each_device_holds_its_part_only():
    """A22"""
    before = GlobalCounters.mem_used
    x = Tensor(whole(1000)).shard(DEVICES, 0).realize()
    assert [250] * 4 == [part.shape[0] for part in x._handle.storage.parts]
    assert GlobalCounters.mem_used - before <= 2 * 4000


def test_to_gathers():
    assert [1, 2, 3] == Tensor([1, 2, 3]).shard(TWO, 0).to("CPU:2").tolist()
    assert "CPU:2" == Tensor([1, 2, 3]).shard(TWO, 0).to("CPU:2").device


def test_to_several_devices_repeats():
    x = Tensor([1, 2]).to(TWO)
    assert (("CPU", "CPU:1"), [1, 2]) == (x.device, x.tolist())
    assert layout_of(x.uop).axis is None


def test_one_device_is_no_shard():
    x = Tensor([1, 2])
    assert x.shard(("CPU",), 0) is x
    assert "CPU:1" == x.shard(("CPU:1",)).device == Tensor([1]).shard_(("CPU:1",)).device


def test_another_axis_is_another_layout():
    x = Tensor(whole(4, 6)).shard(TWO, 0).realize()
    y = x.shard(DEVICES[:3], 1)
    assert DEVICES[1:3] == y.device[1:]
    assert np.array_equal(whole(4, 6), y.numpy())


def test_shard_like_takes_devices_and_axis():
    y = Tensor(whole(4, 6)).shard(TWO, 1) * 2
    x = Tensor(whole(4, 6)).shard_like(y)
    assert layout_of(x.uop) == layout_of(y.uop)
    assert np.array_equal(whole(4, 6) * 3, (x + y).numpy())
    assert "CPU:1" == Tensor([1]).shard_like(Tensor([2], device="CPU:1")).device
    with pytest.raises(ShapeError, match=r"shape \(4,\) cannot be split as one of shape \(4, 6\)"):
        Tensor(whole(4)).shard_like(y)


def test_tensors_are_made_on_several_devices():
    for x in (
        Tensor([1.0, 2.0], device=TWO), Tensor.ones(2, device=TWO), Tensor.arange(2, device=TWO),
        Tensor.rand(2, device=TWO), Tensor.rand(2).shard(TWO, 0).zeros_like(),
    ):  # fmt: skip
        assert ("CPU", "CPU:1") == x.device
        assert (x + 1).numpy().tolist() == (x.numpy() + 1).tolist()


def test_a_pickled_tensor_comes_back_as_it_lay():
    x = Tensor(whole(5)).shard(TWO, 0)
    back = pickle.loads(pickle.dumps(x))
    assert layout_of(x.uop) == layout_of(back.uop)
    assert np.array_equal(whole(5), back.numpy())


@pytest.mark.parametrize("devices", [(), "CPU"])
def test_devices_are_several_names(devices):
    with pytest.raises(ArgumentError, match="devices is a sequence of names"):
        Tensor([1]).shard(devices)


def test_an_axis_that_is_none_is_refused():
    with pytest.raises(AxisError, match="axis 1 is outside"):
        Tensor([1, 2]).shard(TWO, 1)
    with pytest.raises(ShapeError, match="rank 0 has no axis to split"):
        Tensor(1).shard(TWO, 0)
    with pytest.raises(DeviceError, match="the size of axis 0 varies"):
        Tensor([1, 2, 3])[: Variable("n", 1, 3).bind(2)].shard(TWO, 0)


def test_operands_on_other_devices_are_refused():
    x = Tensor([1, 2]).shard(TWO, 0)
    with pytest.raises(DeviceError, match=r"different devices, \('CPU', 'CPU:1'\) and CPU"):
        x + Tensor([1, 2])
    with pytest.raises(DeviceError, match="goes to one device"):
        Tensor.from_dlpack(np.ones(2), device=TWO)
    with pytest.raises(DeviceError, match="cannot be shared"):
        x.__dlpack_device__()


# --- operations --------------------------------------------------------------------------------------

ONE = {
    "add": lambda x: x + 1.5,
    "relu": lambda x: x.relu(),
    "sum": lambda x: x.sum(),
    "sum 0": lambda x: x.sum(0),
    "mean 1": lambda x: x.mean(1),
    "max": lambda x: x.max(0),
    "min": lambda x: x.min(1),
    "prod": lambda x: x.prod(0),
    "var": lambda x: x.var(0),
    "argmax": lambda x: x.argmax(0),
    "argmin": lambda x: x.argmin(),
    "any": lambda x: (x > 3).any(0),
    "softmax 0": lambda x: x.softmax(0),
    "log_softmax": lambda x: x.log_softmax(1),
    "cumsum": lambda x: x.cumsum(0),
    "cummax": lambda x: x.cummax(0)[0],
    "sort": lambda x: x.sort(0)[0],
    "argsort": lambda x: x.argsort(0),
    "topk": lambda x: x.topk(2, 0)[0],
    "transpose": lambda x: x.T,
    "reshape": lambda x: x.reshape(-1),
    "flip": lambda x: x.flip(0, 1),
    "slice": lambda x: x[1:4, ::2],
    "step": lambda x: x[::-2],
    "row": lambda x: x[2],
    "pick": lambda x: x[[3, 0, 3]],
    "negative": lambda x: x[:, -1],
    "pad": lambda x: x.pad(((1, 2), (0, 3))),
    "cat": lambda x: x.cat(x * 2, dim=0),
    "cat 1": lambda x: x.cat(x, dim=1),
    "stack": lambda x: x.stack(x + 1),
    "repeat": lambda x: x.repeat(2, 2),
    "expand": lambda x: x.unsqueeze(0).expand(3, *x.shape),
    "roll": lambda x: x.roll(2, 0),
    "chunk": lambda x: x.chunk(2, 0)[1],
    "diag": lambda x: x[:5, :5].diagonal(),
    "tril": lambda x: x.tril(),
    "one_hot": lambda x: x.cast("int32").abs().one_hot(12),
    "where": lambda x: (x > 0).where(x, 0),
    "clip": lambda x: x.clip(-1, 2),
    "gather": lambda x: x.gather(0, (x.cast("int32") * 0 + 2)),
    "norm": lambda x: (x * x).sum(1).sqrt(),
    "unfold": lambda x: x.unfold(0, 2, 2),
    "std": lambda x: x.std(),
    "masked": lambda x: x.masked_fill(x > 0, 9),
    "bits": lambda x: x.bitcast("int32"),
    "narrow": lambda x: x.bitcast("int16"),
    "half": lambda x: x.half().sum(0),
    "gram": lambda x: x.T @ x,
    "einsum": lambda x: Tensor.einsum("ij,ik->jk", x, x),
    "conv": lambda x: x.reshape(1, 1, 5, 6).avg_pool2d(2),
    "layernorm": lambda x: x.layernorm(),
    "logsumexp": lambda x: x.logsumexp(0),
    "count": lambda x: (x > 0).sum(),
    "dot": lambda x: x[0].dot(x[1]),
    "nonzero": lambda x: x.nonzero(),
    "unique": lambda x: x.flatten().unique()[0],
    "int": lambda x: x.cast("int8").sum(1),
}


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("name", list(ONE))
def test_an_operation_of_a_sharded_tensor_is_that_of_the_tensor(name, count):
    """A22: every axis, and sizes that the devices do not divide."""
    operation, data = ONE[name], whole(5, 6)
    expected = operation(Tensor(data)).numpy()
    for number, axis in enumerate(layouts(2), count):
        x = Tensor(data).shard(DEVICES[:count], axis)
        result = operation(x.realize() if number % 2 else x).numpy()
        assert expected.dtype == result.dtype
        np.testing.assert_allclose(result, expected, rtol=2e-6, atol=1e-6, err_msg=f"axis {axis}")


@pytest.mark.parametrize("count", [2, 3, 4])
def test_a_matrix_product_takes_operands_in_any_layout(count):
    """A22"""
    a, b = whole(5, 6), whole(6, 7)
    for first in layouts(2):
        for second in layouts(2):
            result = Tensor(a).shard(DEVICES[:count], first) @ Tensor(b).shard(DEVICES[:count], second)
            assert np.array_equal(a @ b, result.numpy())


def test_two_elements_over_four_devices():
    """B118"""
    x = Tensor([3.0, 5.0]).shard(DEVICES, 0)
    assert [[4.0, 6.0], 8.0, 1, [5.0, 3.0]] == [
        (x + 1).tolist(), x.sum().item(), x.argmax().item(), x.flip(0).tolist()
    ]  # fmt: skip
    x[1] = 9.0
    assert [3.0, 9.0] == x.tolist()


def test_argmax_cumsum_and_a_write_over_the_axis_of_the_split():
    """O14"""
    x = Tensor([[1, 8], [7, 2], [3, 6], [5, 4]]).shard(TWO, 0)
    assert [1, 0] == x.argmax(0).tolist()
    assert [[1, 8], [8, 10], [11, 16], [16, 20]] == x.cumsum(0).tolist()
    t = Tensor([1, 2, 3, 4]).shard(TWO, 0)
    t[1:3] = 0
    assert [1, 0, 0, 4] == t.tolist()


def test_sums_of_narrow_floats_are_rounded_once():
    """A22: partial sums stay narrow on the way, and are added in float32."""
    x = Tensor(np.array([2048] + [1] * 7, np.float16)).shard(DEVICES, 0)
    assert 2055.0 - 1 <= x.sum().item() <= 2056.0


@pytest.mark.parametrize("way", ["naive", "ring", "all-to-all"])
def test_every_way_of_an_all_reduce_gives_the_sum(way):
    """A22"""
    with Context(ALL_REDUCE=way):
        x = Tensor(whole(7, 5)).shard(DEVICES[:3], 0)
        assert np.array_equal(whole(7, 5).sum(0), x.sum(0).numpy())
        assert np.array_equal(whole(7, 5).max(0), x.max(0).numpy())


def test_explain_tells_what_each_device_does():
    kernels = (Tensor(whole(4)).shard(TWO, 0).realize() + 1).explain().kernels
    assert ["CPU", "CPU:1"] == sorted(kernel.device for kernel in kernels)


def test_fused_equals_plain():
    x = Tensor(whole(5, 6)).shard(DEVICES[:3], 0).realize()
    with Context(FUSE=0):
        plain = ((x - x.mean(0)) * 2).softmax(1).numpy()
    np.testing.assert_allclose(((x - x.mean(0)) * 2).softmax(1).numpy(), plain, rtol=1e-6)


# --- writes --------------------------------------------------------------------------------------------

WRITES = {
    "slice": lambda t: t.__setitem__(slice(1, 4), 0),
    "step": lambda t: t.__setitem__(slice(None, None, 2), 7),
    "row": lambda t: t.__setitem__(2, -1),
    "column": lambda t: t.__setitem__((slice(None), 1), 5),
    "corner": lambda t: t.__setitem__((slice(0, 2), slice(3, 6)), t[3:5, 0:3]),
    "self": lambda t: t.assign(t.flip(0)),
    "add": lambda t: t.__iadd__(1),
    "shift": lambda t: t[1:].assign(t[:-1]),
    "transposed": lambda t: t.T[1:3].assign(8 * t.T[0:2]),
    "mask": lambda t: t.__setitem__(t > 2, 0),
    "places": lambda t: t.__setitem__([0, 3], 4),
    "flat": lambda t: t.reshape(-1)[3:11].assign(0 * t.reshape(-1)[3:11]),
    "turned": lambda t: t.flip(0)[0:2].assign(t[0:2] + 10),
}


@pytest.mark.parametrize("name", list(WRITES))
@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("realized", [False, True])
def test_a_write_to_a_sharded_tensor_is_that_to_the_tensor(name, axis, realized):
    """A22"""
    data = whole(5, 6)
    one, many = Tensor(data).clone(), Tensor(data).shard(DEVICES[:3], axis)
    if realized:
        many.realize()
    for t in (one, many):
        WRITES[name](t)
    assert np.array_equal(one.numpy(), many.numpy())
    assert DEVICES[1:3] == many.device[1:]


def test_a_read_before_a_write_keeps_the_old_value():
    """A1, on several devices: whatever is realized when."""
    for realize in (False, True):
        t = Tensor([1, 2, 3, 4, 5]).shard(TWO, 0).realize()
        before, view = t + 10, t[1:4]
        if realize:
            before.realize()
        t[2:] = 0
        assert [[1, 2, 0, 0, 0], [11, 12, 13, 14, 15], [2, 3, 4]] == [t.tolist(), before.tolist(), view.tolist()]


def test_a_written_tensor_keeps_its_memory_and_its_layout():
    t = Tensor(whole(6)).shard(TWO, 0).realize()
    memory = [part.buffer for part in t._handle.storage.parts]
    t.assign(Tensor(whole(6) * 2).shard(TWO)).realize()
    t += Tensor(whole(6)).shard(TWO, 0)
    assert np.array_equal(whole(6) * 3, t.numpy())
    assert memory == [part.buffer for part in t._handle.storage.parts]


def test_a_failed_plan_leaves_every_part_as_it_was(monkeypatch):
    t = Tensor(whole(4)).shard(TWO, 0).realize()
    t += 1
    with monkeypatch.context() as patch:
        patch.setattr("lazulite.engine.execute.bind", lambda *facts: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            t.realize()
    assert np.array_equal(whole(4) + 1, t.numpy())


def test_a_fault_in_one_part_loses_the_tensor(monkeypatch):
    t = Tensor(whole(4)).shard(TWO, 0).realize()
    t += 1
    from lazulite.engine import execute

    issued = []

    def issue(run, command):
        issued.append(command)
        if len(issued) == 2:
            raise OSError("the wire broke")

    with monkeypatch.context() as patch:
        patch.setattr(execute, "issue", issue)
        with pytest.raises(OSError, match="the wire broke"):
            t.realize()
    with pytest.raises(DeviceError, match="contents of a tensor are lost"):
        t.numpy()


# --- gradients ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_gradients_are_those_of_one_device(axis):
    """A22"""
    data, weights = whole(5, 6), whole(6, 3)

    def gradients(place, place_weights):
        x, w = place(Tensor(data, requires_grad=True)), place_weights(Tensor(weights, requires_grad=True))
        (x @ w).tanh().sum().backward()
        return x.grad.numpy(), w.grad.numpy()

    expected = gradients(lambda x: x, lambda w: w)
    for got, wanted in zip(
        gradients(lambda x: x.shard_(TWO, axis), lambda w: w.shard_(TWO)), expected, strict=True
    ):  # fmt: skip
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_a_gradient_goes_back_to_where_the_value_came_from():
    x = Tensor(whole(4), requires_grad=True)
    (x.shard(TWO, 0) * 3).sum().backward()
    assert ("CPU", [3.0] * 4) == (x.grad.device, x.grad.tolist())


def test_a_write_has_the_gradient_of_its_out_of_place_form():
    """A3, on several devices."""
    x = Tensor([2.0, 3.0, 4.0], requires_grad=True).shard_(TWO, 0)
    y = x * 1
    y[1:] = y[1:] * y[1:]
    y.sum().backward()
    assert [1.0, 6.0, 8.0] == x.grad.tolist()


# --- layers, optimisers, captures ------------------------------------------------------------------


class Model:
    def __init__(self):
        self.conv = nn.Conv2d(1, 3, 3, bias=False)  # whose gradient would be noise
        self.norm = nn.BatchNorm(3)
        self.out = nn.Linear(3 * 4 * 4, 5)

    def __call__(self, x):
        return self.out(self.norm(self.conv(x)).relu().flatten(1))


def trained(devices, optimizer, run):
    """The losses of some steps, and the parameters after them."""
    Tensor.manual_seed(3)
    model, random = Model(), np.random.default_rng(0)
    if devices:
        for tensor in nn.state.get_state_dict(model).values():
            tensor.shard_(devices)
    steps = optimizer(nn.state.get_parameters(model))

    def step(x, y):
        steps.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y)
        loss.backward()
        steps.step()
        return loss.realize()

    call, losses = run(step), []
    with Tensor.train():
        for _ in range(4):
            x, y = Tensor(random.normal(size=(7, 1, 6, 6)).astype(np.float32)), Tensor(random.integers(0, 5, 7))
            if devices:
                x, y = x.shard(devices, 0), y.shard(devices, 0)
            losses.append(call(x, y).item())
    if isinstance(call, jit):
        assert 1 == captured(call)
    return losses, [p.numpy() for p in nn.state.get_parameters(model)]


@pytest.mark.parametrize("run", [lambda step: step, jit], ids=["eager", "captured"])
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_a_data_parallel_step_is_that_of_one_device(name, run):
    """A22: the batch is split, the weights are whole on every device."""

    def optimizer(parameters):
        return nn.optim.SGD(parameters, lr=0.1, momentum=0.9) if name == "SGD" else nn.optim.Adam(parameters, lr=0.01)

    losses, weights = trained(None, optimizer, lambda step: step)
    own_losses, own_weights = trained(DEVICES[:3], optimizer, run)
    np.testing.assert_allclose(own_losses, losses, rtol=1e-4)
    for own, weight in zip(own_weights, weights, strict=True):
        np.testing.assert_allclose(own, weight, rtol=1e-3, atol=1e-4)


def test_weights_may_be_split():
    layer = nn.Linear(6, 8)
    x = Tensor(whole(5, 6))
    expected = layer(x).numpy()
    for axis in (0, 1):
        layer.weight.shard_(TWO, axis)
        layer.bias.shard_(TWO)
        np.testing.assert_allclose(layer(x.shard(TWO)).numpy(), expected, rtol=1e-5, atol=1e-5)


def test_a_state_dictionary_loads_into_a_sharded_model():
    first, second = nn.Linear(3, 4), nn.Linear(3, 4)
    second.weight.shard_(TWO, 0)
    second.bias.shard_(TWO)
    nn.state.load_state_dict(second, nn.state.get_state_dict(first))
    assert np.array_equal(first.weight.numpy(), second.weight.numpy())
    assert 0 == layout_of(second.weight.uop).axis


def test_a_captured_function_takes_and_gives_sharded_tensors():
    """A22, A24"""
    total = Tensor.zeros(5).contiguous().shard_(DEVICES[:3], 0)

    @jit
    def step(x):
        total.assign(total + x)
        return x * 2, (x + total).sum()

    expected = np.zeros(5, np.float32)
    held = []
    for n in range(5):
        data = whole(5) + n
        expected = expected + data
        double, summed = step(Tensor(data).shard(DEVICES[:3], 0))
        held.append((double, data * 2))
        assert np.array_equal(expected, total.numpy())
        assert (data + expected).sum() == summed.item()
    assert 1 == captured(step)
    for double, wanted in held:
        assert DEVICES[1:3] == double.device[1:]
        assert np.array_equal(wanted, double.numpy())


def test_another_layout_is_another_capture():
    double = jit(lambda x: x * 2)
    for axis in (0, 0, 0, 1, 1, 1, None, None, None):
        assert np.array_equal(whole(4, 4) * 2, double(Tensor(whole(4, 4)).shard(TWO, axis)).numpy())
    assert 3 == captured(double)


def test_results_of_a_replay_have_gradients():
    weight = Tensor(whole(4), requires_grad=True).shard_(TWO, 0)
    scaled = jit(lambda x: x * weight)
    for n in range(4):
        weight.grad = None
        scaled(Tensor(whole(4) + n).shard(TWO, 0)).sum().backward()
        assert np.array_equal(whole(4) + n, weight.grad.numpy())


def test_a_capture_over_several_devices_is_not_saved(tmp_path):
    double = jit(lambda x: x * 2)
    for _ in range(3):
        double(Tensor(whole(4)).shard(TWO, 0))
    with pytest.raises(CaptureError, match="several devices"):
        double.save(tmp_path / "double")


def test_random_numbers_do_not_depend_on_the_layout():
    Tensor.manual_seed(5)
    expected = Tensor.rand(5).numpy()
    Tensor.manual_seed(5)
    x = Tensor.rand(5, device=DEVICES[:3])
    assert np.array_equal(expected, x.numpy())
    assert dtypes.float32 is x.dtype
