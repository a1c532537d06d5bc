"""Neural networks: layers, optimisers, the state of a model, data.

Names are imported on first use; `functional`, `init`, `optim`, `schedulers`, `state`, `utils`, `data` and `loading` are
modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lazulite.nn import functional as functional
    from lazulite.nn import init as init
    from lazulite.nn import optim as optim
    from lazulite.nn import schedulers as schedulers
    from lazulite.nn import state as state
    from lazulite.nn import utils as utils
    from lazulite.nn.containers import ModuleDict as ModuleDict
    from lazulite.nn.containers import ModuleList as ModuleList
    from lazulite.nn.containers import ParameterDict as ParameterDict
    from lazulite.nn.containers import ParameterList as ParameterList
    from lazulite.nn.containers import Sequential as Sequential
    from lazulite.nn.convolution import Conv1d as Conv1d
    from lazulite.nn.convolution import Conv2d as Conv2d
    from lazulite.nn.convolution import Conv3d as Conv3d
    from lazulite.nn.convolution import ConvTranspose1d as ConvTranspose1d
    from lazulite.nn.convolution import ConvTranspose2d as ConvTranspose2d
    from lazulite.nn.convolution import ConvTranspose3d as ConvTranspose3d
    from lazulite.nn.layers import BatchNorm as BatchNorm
    from lazulite.nn.layers import BatchNorm1d as BatchNorm1d
    from lazulite.nn.layers import BatchNorm2d as BatchNorm2d
    from lazulite.nn.layers import BatchNorm3d as BatchNorm3d
    from lazulite.nn.layers import Bilinear as Bilinear
    from lazulite.nn.layers import Embedding as Embedding
    from lazulite.nn.layers import EmbeddingBag as EmbeddingBag
    from lazulite.nn.layers import LayerNorm as LayerNorm
    from lazulite.nn.layers import LayerNorm2d as LayerNorm2d
    from lazulite.nn.layers import Linear as Linear
    from lazulite.nn.layers import PReLU as PReLU
    from lazulite.nn.loading import DataLoader as DataLoader
    from lazulite.nn.loading import Dataset as Dataset
    from lazulite.nn.loading import Subset as Subset
    from lazulite.nn.loading import TensorDataset as TensorDataset
    from lazulite.nn.module import Module as Module
    from lazulite.nn.normalization import GroupNorm as GroupNorm
    from lazulite.nn.normalization import InstanceNorm as InstanceNorm
    from lazulite.nn.normalization import InstanceNorm1d as InstanceNorm1d
    from lazulite.nn.normalization import InstanceNorm2d as InstanceNorm2d
    from lazulite.nn.normalization import InstanceNorm3d as InstanceNorm3d
    from lazulite.nn.normalization import RMSNorm as RMSNorm
    from lazulite.nn.recurrent import GRU as GRU
    from lazulite.nn.recurrent import LSTM as LSTM
    from lazulite.nn.recurrent import RNN as RNN
    from lazulite.nn.recurrent import GRUCell as GRUCell
    from lazulite.nn.recurrent import LSTMCell as LSTMCell
    from lazulite.nn.recurrent import RNNCell as RNNCell
    from lazulite.nn.thin import CELU as CELU
    from lazulite.nn.thin import ELU as ELU
    from lazulite.nn.thin import GELU as GELU
    from lazulite.nn.thin import GLU as GLU
    from lazulite.nn.thin import SELU as SELU
    from lazulite.nn.thin import AdaptiveAvgPool1d as AdaptiveAvgPool1d
    from lazulite.nn.thin import AdaptiveAvgPool2d as AdaptiveAvgPool2d
    from lazulite.nn.thin import AdaptiveAvgPool3d as AdaptiveAvgPool3d
    from lazulite.nn.thin import AdaptiveMaxPool1d as AdaptiveMaxPool1d
    from lazulite.nn.thin import AdaptiveMaxPool2d as AdaptiveMaxPool2d
    from lazulite.nn.thin import AdaptiveMaxPool3d as AdaptiveMaxPool3d
    from lazulite.nn.thin import AlphaDropout as AlphaDropout
    from lazulite.nn.thin import AvgPool1d as AvgPool1d
    from lazulite.nn.thin import AvgPool2d as AvgPool2d
    from lazulite.nn.thin import AvgPool3d as AvgPool3d
    from lazulite.nn.thin import BCELoss as BCELoss
    from lazulite.nn.thin import BCEWithLogitsLoss as BCEWithLogitsLoss
    from lazulite.nn.thin import ChannelShuffle as ChannelShuffle
    from lazulite.nn.thin import CircularPad1d as CircularPad1d
    from lazulite.nn.thin import CircularPad2d as CircularPad2d
    from lazulite.nn.thin import CircularPad3d as CircularPad3d
    from lazulite.nn.thin import ConstantPad1d as ConstantPad1d
    from lazulite.nn.thin import ConstantPad2d as ConstantPad2d
    from lazulite.nn.thin import ConstantPad3d as ConstantPad3d
    from lazulite.nn.thin import CosineEmbeddingLoss as CosineEmbeddingLoss
    from lazulite.nn.thin import CosineSimilarity as CosineSimilarity
    from lazulite.nn.thin import CrossEntropyLoss as CrossEntropyLoss
    from lazulite.nn.thin import CTCLoss as CTCLoss
    from lazulite.nn.thin import Dropout as Dropout
    from lazulite.nn.thin import Dropout1d as Dropout1d
    from lazulite.nn.thin import Dropout2d as Dropout2d
    from lazulite.nn.thin import Dropout3d as Dropout3d
    from lazulite.nn.thin import FeatureAlphaDropout as FeatureAlphaDropout
    from lazulite.nn.thin import Flatten as Flatten
    from lazulite.nn.thin import Fold as Fold
    from lazulite.nn.thin import FractionalMaxPool2d as FractionalMaxPool2d
    from lazulite.nn.thin import FractionalMaxPool3d as FractionalMaxPool3d
    from lazulite.nn.thin import GaussianNLLLoss as GaussianNLLLoss
    from lazulite.nn.thin import Hardshrink as Hardshrink
    from lazulite.nn.thin import Hardsigmoid as Hardsigmoid
    from lazulite.nn.thin import Hardswish as Hardswish
    from lazulite.nn.thin import Hardtanh as Hardtanh
    from lazulite.nn.thin import HingeEmbeddingLoss as HingeEmbeddingLoss
    from lazulite.nn.thin import HuberLoss as HuberLoss
    from lazulite.nn.thin import Identity as Identity
    from lazulite.nn.thin import KLDivLoss as KLDivLoss
    from lazulite.nn.thin import L1Loss as L1Loss
    from lazulite.nn.thin import LeakyReLU as LeakyReLU
    from lazulite.nn.thin import LocalResponseNorm as LocalResponseNorm
    from lazulite.nn.thin import LogSigmoid as LogSigmoid
    from lazulite.nn.thin import LogSoftmax as LogSoftmax
    from lazulite.nn.thin import LPPool1d as LPPool1d
    from lazulite.nn.thin import LPPool2d as LPPool2d
    from lazulite.nn.thin import LPPool3d as LPPool3d
    from lazulite.nn.thin import MarginRankingLoss as MarginRankingLoss
    from lazulite.nn.thin import MaxPool1d as MaxPool1d
    from lazulite.nn.thin import MaxPool2d as MaxPool2d
    from lazulite.nn.thin import MaxPool3d as MaxPool3d
    from lazulite.nn.thin import MaxUnpool1d as MaxUnpool1d
    from lazulite.nn.thin import MaxUnpool2d as MaxUnpool2d
    from lazulite.nn.thin import MaxUnpool3d as MaxUnpool3d
    from lazulite.nn.thin import Mish as Mish
    from lazulite.nn.thin import MSELoss as MSELoss
    from lazulite.nn.thin import MultiLabelMarginLoss as MultiLabelMarginLoss
    from lazulite.nn.thin import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
    from lazulite.nn.thin import MultiMarginLoss as MultiMarginLoss
    from lazulite.nn.thin import NLLLoss as NLLLoss
    from lazulite.nn.thin import NLLLoss2d as NLLLoss2d
    from lazulite.nn.thin import PairwiseDistance as PairwiseDistance
    from lazulite.nn.thin import PixelShuffle as PixelShuffle
    from lazulite.nn.thin import PixelUnshuffle as PixelUnshuffle
    from lazulite.nn.thin import PoissonNLLLoss as PoissonNLLLoss
    from lazulite.nn.thin import ReflectionPad1d as ReflectionPad1d
    from lazulite.nn.thin import ReflectionPad2d as ReflectionPad2d
    from lazulite.nn.thin import ReflectionPad3d as ReflectionPad3d
    from lazulite.nn.thin import ReLU as ReLU
    from lazulite.nn.thin import ReLU6 as ReLU6
    from lazulite.nn.thin import ReplicationPad1d as ReplicationPad1d
    from lazulite.nn.thin import ReplicationPad2d as ReplicationPad2d
    from lazulite.nn.thin import ReplicationPad3d as ReplicationPad3d
    from lazulite.nn.thin import RReLU as RReLU
    from lazulite.nn.thin import Sigmoid as Sigmoid
    from lazulite.nn.thin import SiLU as SiLU
    from lazulite.nn.thin import SmoothL1Loss as SmoothL1Loss
    from lazulite.nn.thin import SoftMarginLoss as SoftMarginLoss
    from lazulite.nn.thin import Softmax as Softmax
    from lazulite.nn.thin import Softmax2d as Softmax2d
    from lazulite.nn.thin import Softmin as Softmin
    from lazulite.nn.thin import Softplus as Softplus
    from lazulite.nn.thin import Softshrink as Softshrink
    from lazulite.nn.thin import Softsign as Softsign
    from lazulite.nn.thin import Tanh as Tanh
    from lazulite.nn.thin import Tanhshrink as Tanhshrink
    from lazulite.nn.thin import Threshold as Threshold
    from lazulite.nn.thin import TripletMarginLoss as TripletMarginLoss
    from lazulite.nn.thin import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
    from lazulite.nn.thin import Unflatten as Unflatten
    from lazulite.nn.thin import Unfold as Unfold
    from lazulite.nn.thin import Upsample as Upsample
    from lazulite.nn.thin import UpsamplingBilinear2d as UpsamplingBilinear2d
    from lazulite.nn.thin import UpsamplingNearest2d as UpsamplingNearest2d
    from lazulite.nn.thin import ZeroPad1d as ZeroPad1d
    from lazulite.nn.thin import ZeroPad2d as ZeroPad2d
    from lazulite.nn.thin import ZeroPad3d as ZeroPad3d
    from lazulite.nn.transformer import MultiheadAttention as MultiheadAttention
    from lazulite.nn.transformer import Transformer as Transformer
    from lazulite.nn.transformer import TransformerDecoder as TransformerDecoder
    from lazulite.nn.transformer import TransformerDecoderLayer as TransformerDecoderLayer
    from lazulite.nn.transformer import TransformerEncoder as TransformerEncoder
    from lazulite.nn.transformer import TransformerEncoderLayer as TransformerEncoderLayer

_MODULES = ("data", "functional", "init", "loading", "optim", "schedulers", "state", "utils")
_HOMES = {
    "containers": """
        ModuleDict ModuleList ParameterDict ParameterList Sequential
    """,
    "convolution": """
        Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d
    """,
    "layers": """
        BatchNorm BatchNorm1d BatchNorm2d BatchNorm3d Bilinear Embedding EmbeddingBag LayerNorm LayerNorm2d
        Linear PReLU
    """,
    "loading": """
        DataLoader Dataset Subset TensorDataset
    """,
    "module": """
        Module
    """,
    "normalization": """
        GroupNorm InstanceNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d RMSNorm
    """,
    "recurrent": """
        GRU GRUCell LSTM LSTMCell RNN RNNCell
    """,
    "thin": """
        AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
        AdaptiveMaxPool3d AlphaDropout AvgPool1d AvgPool2d AvgPool3d BCELoss BCEWithLogitsLoss CELU CTCLoss
        ChannelShuffle CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d
        CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss Dropout Dropout1d Dropout2d Dropout3d ELU
        FeatureAlphaDropout Flatten Fold FractionalMaxPool2d FractionalMaxPool3d GELU GLU GaussianNLLLoss
        Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss HuberLoss Identity KLDivLoss L1Loss
        LPPool1d LPPool2d LPPool3d LeakyReLU LocalResponseNorm LogSigmoid LogSoftmax MSELoss MarginRankingLoss
        MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Mish MultiLabelMarginLoss
        MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss NLLLoss2d PairwiseDistance PixelShuffle PixelUnshuffle
        PoissonNLLLoss RReLU ReLU ReLU6 ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d
        ReplicationPad2d ReplicationPad3d SELU SiLU Sigmoid SmoothL1Loss SoftMarginLoss Softmax Softmax2d
        Softmin Softplus Softshrink Softsign Tanh Tanhshrink Threshold TripletMarginLoss
        TripletMarginWithDistanceLoss Unflatten Unfold Upsample UpsamplingBilinear2d UpsamplingNearest2d
        ZeroPad1d ZeroPad2d ZeroPad3d
    """,
    "transformer": """
        MultiheadAttention Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder
        TransformerEncoderLayer
    """,
}
"""The module of each name."""
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [*_MODULES, *_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"lazulite.nn.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'lazulite.nn' has no attribute {name!r}")
    found = getattr(import_module(f"lazulite.nn.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
