"""Neural networks: layers, optimisers, the state of a model, data."""

from lazulite.nn import optim as optim
from lazulite.nn import state as state
from lazulite.nn.layers import BatchNorm as BatchNorm
from lazulite.nn.layers import BatchNorm2d as BatchNorm2d
from lazulite.nn.layers import Conv2d as Conv2d
from lazulite.nn.layers import ConvTranspose2d as ConvTranspose2d
from lazulite.nn.layers import Dropout as Dropout
from lazulite.nn.layers import Embedding as Embedding
from lazulite.nn.layers import LayerNorm as LayerNorm
from lazulite.nn.layers import Linear as Linear
from lazulite.nn.layers import Sequential as Sequential
from lazulite.nn.normalization import GroupNorm as GroupNorm
from lazulite.nn.normalization import InstanceNorm as InstanceNorm
from lazulite.nn.normalization import RMSNorm as RMSNorm
