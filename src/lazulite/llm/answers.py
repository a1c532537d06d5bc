"""Answers as texts: tokens decoded, stop strings found, several choices side by side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from lazulite.llm.protocol import Wanted
from lazulite.llm.service import Service
from lazulite.llm.stopping import StopStrings


@dataclass(frozen=True)
class Chance:
    """A token with the logarithm of its chance, and the likeliest ones beside it."""

    token: int
    log_chance: float
    likely: Sequence[tuple[int, float]] = ()


@dataclass(frozen=True)
class Piece:
    """A further part of one choice; `done` says why it is the last, if it is."""

    choice: int
    text: str
    done: str = ""
    chances: Sequence[Chance] = ()
    tokens: int = 0
    """How many tokens it took."""


@dataclass
class Choice:
    """A whole choice."""

    text: str = ""
    done: str = ""
    chances: list[Chance] = field(default_factory=list)
    tokens: int = 0

    def add(self, piece: Piece) -> None:
        """Append a piece."""
        self.text += piece.text
        self.done = piece.done or self.done
        self.chances += piece.chances
        self.tokens += piece.tokens


async def pieces(service: Service, prompt: Sequence[int], how: Wanted, most: int) -> AsyncGenerator[Piece, None]:
    """The pieces of all choices, as they come.  Closing the iterator ends them all."""
    if how.choices == 1:
        async with aclosing(_pieces_of(service, prompt, how, most, 0)) as only:
            async for piece in only:
                yield piece
        return
    found: asyncio.Queue[Piece | BaseException | None] = asyncio.Queue()

    async def follow(choice: int) -> None:
        try:
            async with aclosing(_pieces_of(service, prompt, how, most, choice)) as own:
                async for piece in own:
                    found.put_nowait(piece)
            found.put_nowait(None)
        except Exception as error:
            found.put_nowait(error)

    tasks = [asyncio.create_task(follow(choice)) for choice in range(how.choices)]
    try:
        left = len(tasks)
        while left:
            one = await found.get()
            if isinstance(one, BaseException):
                raise one
            if one is None:
                left -= 1
            else:
                yield one
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pieces_of(
    service: Service, prompt: Sequence[int], how: Wanted, most: int, choice: int
) -> AsyncGenerator[Piece, None]:
    seed = how.sampling.seed
    sampling = how.sampling if seed is None or not choice else replace(how.sampling, seed=seed + choice)
    decoder, stops = service.transformer.tokenizer.stream(), StopStrings(how.stops)
    async with aclosing(service.answer(prompt, sampling, most, how.likely)) as steps:
        async for step in steps:
            ended = step.done == "stop"
            text = stops.add("" if ended else decoder.add(step.token))
            if step.done and not stops.found:
                text += stops.add(decoder.rest())
                text += stops.rest()
            chances = [] if how.likely is None or ended else [Chance(step.token, step.log_chance, step.likely)]
            yield Piece(choice, text, "stop" if stops.found else step.done, chances, int(not ended))
            if stops.found:
                return
