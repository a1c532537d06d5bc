"""Settings, counters, variables, captures and nodes."""

import tinygrad
from tinygrad import Context, Device, GlobalCounters, Tensor, TinyJit, Variable, function
from tinygrad.engine.jit import TinyJit as SameJit
from tinygrad.helpers import DEBUG, JIT, disable_gc, getenv, tqdm
from tinygrad.nn import optim
from tinygrad.uop import Ops as SameOps
from tinygrad.uop.ops import Ops, resolve

GlobalCounters.reset()
a = (Tensor([1.0, 2.0, 3.0]).realize() * 2).realize()
print(GlobalCounters.kernel_count >= 1, GlobalCounters.global_ops >= 3, GlobalCounters.mem_used > 0)
with Context(DEBUG=0, NOOPT=1):
    print((a + 1).tolist(), DEBUG.value, DEBUG >= 1)
print(TinyJit is SameJit, Ops is SameOps, JIT.value, getenv("NOT_THERE", "default"), int(getenv("NOT_THERE", 3)))
print(a.uop.op is Ops.BUFFER or a.uop.base.op is Ops.BUFFER, a.uop.is_realized, (a + 1).uop.is_realized, a.uop.shape)
print(
    (a + 1).uop.op is Ops.ADD,
    a.reshape(1, 3).uop.op is Ops.RESHAPE,
    a.uop.device == Device.DEFAULT,
    a.device == Device.DEFAULT,
)


@TinyJit
def step(x):
    return (x * x + 1).realize()


print([step(Tensor([float(i)]).realize()).item() for i in range(5)])

n = Variable("n", 1, 8)
data = Tensor.arange(8).float().realize()
for length in (2, 5):
    bound = n.bind(length)
    print(data[:bound].sum().item())


@function
def scaled(x: Tensor, y: Tensor) -> Tensor:
    return x * y + 1


print(scaled(Tensor([2.0]), Tensor([3.0])).tolist(), resolve(True), hasattr(optim, "SGD"), hasattr(tinygrad, "nn"))
with disable_gc():
    w = Tensor([4.0])
    opt = optim.SGD([w], lr=0.25)
    with Context(TRAINING=1):
        for _ in tqdm(range(3), disable=True):
            opt.zero_grad()
            (w * w).sum().backward()
            opt.step()
print(w.tolist())
