"""The state of a model through a file and back."""

import os
import sys

from tinygrad import Tensor, nn
from tinygrad.helpers import Timing, getenv, temp
from tinygrad.nn.state import get_parameters, get_state_dict, load_state_dict, safe_load, safe_save


class Tiny:
    def __init__(self):
        self.l1 = nn.Linear(4, 8)
        self.l2 = nn.Linear(8, 2, bias=False)
        self.blocks = [nn.LayerNorm(8), nn.Embedding(5, 3)]

    def __call__(self, x):
        return self.l2(self.blocks[0](self.l1(x).relu()))


first, second = Tiny(), Tiny()
path = temp(f"tiny-{os.getpid()}.safetensors")
with Timing("saved in ", enabled=bool(getenv("TIMING", 0))):
    safe_save(get_state_dict(first), path)
loaded = safe_load(path)
print(sorted(loaded), [tuple(loaded[k].shape) for k in sorted(loaded)])
x = Tensor.ones(1, 4)
before = (first(x) - second(x)).abs().max().item()
load_state_dict(second, loaded, verbose=False)
print(before > 0, (first(x) - second(x)).abs().max().item() < 1e-5, len(get_parameters(second)), sys.argv[1:])
os.remove(path)
