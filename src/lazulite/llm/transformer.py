"""`Transformer`: a language model with its tokenizer, ready to generate."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lazulite.base.errors import ArgumentError
from lazulite.llm import template, tokenizer, weights
from lazulite.llm.batching import Request, Scheduler, Step
from lazulite.llm.config import Config
from lazulite.llm.model import Model
from lazulite.llm.quantised import Quantised
from lazulite.llm.sampling import Sampling
from lazulite.llm.steps import CHUNK, Stepper
from lazulite.llm.tokenizer import Tokenizer
from lazulite.tensor.tensor import Tensor

DEFAULT_CONTEXT = 4096
"""Tokens that a model has room for unless more are asked for."""


class Transformer:
    """A model with its tokenizer; `from_gguf` and `from_folder` read one.

    `context` is how many tokens a text may have (memory for keys and values grows with it), `slots` how many
    texts are worked on at once.
    """

    def __init__(
        self, config: Config, weights: Mapping[str, Tensor | Quantised], tokens: Tokenizer,
        context: int | None = None, slots: int = 1, name: str = "model",
    ) -> None:  # fmt: skip
        wanted = min(config.context, DEFAULT_CONTEXT) if context is None else context
        if not 1 <= wanted <= config.context:
            raise ArgumentError("Transformer", f"a context lies between 1 and {config.context}, got {wanted}")
        if slots < 1:
            raise ArgumentError("Transformer", f"there is one slot at least, got {slots}")
        self.config, self.tokenizer, self.name = config, tokens, name
        self.stepper = Stepper(Model(config, weights, wanted + CHUNK), slots, wanted)
        self.scheduler = Scheduler(self.stepper)

    @classmethod
    def from_gguf(cls, path: str | os.PathLike[str], context: int | None = None, slots: int = 1) -> Transformer:
        """The model in a GGUF file."""
        found = weights.from_gguf_file(Path(path))
        tokens = tokenizer.from_gguf(found.metadata, str(path))
        name = str(found.metadata.get("general.name", Path(path).stem))
        return cls(found.config, found.weights, tokens, context, slots, name)

    @classmethod
    def from_folder(cls, path: str | os.PathLike[str], context: int | None = None, slots: int = 1) -> Transformer:
        """The model in a Hugging Face folder: config.json, safetensors files, tokenizer.json."""
        config, found = weights.from_folder(Path(path))
        return cls(config, found, tokenizer.from_folder(Path(path)), context, slots, Path(path).name)

    @classmethod
    def load(cls, path: str | os.PathLike[str], context: int | None = None, slots: int = 1) -> Transformer:
        """The model in a file or folder, whichever it is."""
        return (cls.from_folder if Path(path).is_dir() else cls.from_gguf)(path, context, slots)

    # --- generating -------------------------------------------------------------------------------

    def generate(
        self, token_ids: Sequence[int], max_tokens: int = 256, temperature: float = 0.0, *,
        ends: Iterable[int] | None = None, **how: Any,
    ) -> Iterator[int]:  # fmt: skip
        """The tokens that go on from some tokens, one by one, without the one that ends the text.

        `how` are the other fields of `Sampling`; `ends` the tokens that end the text, else the tokenizer's.
        """
        for step in self.steps(token_ids, max_tokens, Sampling(temperature=temperature, **how), ends):
            if step.done != "stop":
                yield step.token

    def steps(
        self, token_ids: Sequence[int], max_tokens: int, sampling: Sampling, ends: Iterable[int] | None = None
    ) -> Generator[Step, None, None]:
        """As `generate`, with what is known about each token.  Closing the iterator frees its slot."""
        if max_tokens < 1:
            raise ArgumentError("generate", f"max_tokens is 1 at least, got {max_tokens}")
        told: deque[Step] = deque()
        stops = self.tokenizer.ends if ends is None else frozenset(ends)
        request = Request(list(token_ids), sampling, max_tokens, stops, told.append)
        self.scheduler.submit(request)
        try:
            done = ""
            while not done:
                while not told:
                    self.scheduler.step()
                step = told.popleft()
                done = step.done
                yield step
        finally:
            request.cancelled = True

    def chat_tokens(self, messages: Sequence[Mapping[str, Any]], **facts: Any) -> list[int]:
        """The tokens of a conversation, laid out by the model's own template, up to where the answer begins."""
        names = self.tokenizer.names
        text = template.render(self.tokenizer.template or _PLAIN, messages, names=names, **facts)
        begin = names.get("bos_token", "")
        text = text.removeprefix(begin) if begin and self.tokenizer.add_begin else text
        return self.tokenizer.encode(text)


_PLAIN = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
"""For models without a template."""
