"""Language models: read from GGUF files and Hugging Face folders, run on tensors, served over HTTP."""

from lazulite.llm.sampling import Sampling as Sampling
from lazulite.llm.transformer import Transformer as Transformer
