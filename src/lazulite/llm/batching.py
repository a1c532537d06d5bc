"""Several requests at once on one model: continuous batching with reuse of common beginnings.

A `Scheduler` gives each request a slot of the cache as soon as one is free.  One `step` reads a part of
one prompt and then gives every running request its next token, so a long prompt delays the others by no
more than a part.  A slot keeps the tokens that it holds after its request is done: a request that begins with
the same tokens does not read them again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lazulite.base.errors import ArgumentError
from lazulite.llm.sampling import Sampler, Sampling, Scores, log_chances
from lazulite.llm.steps import CHUNK, Stepper


@dataclass(frozen=True)
class Step:
    """A token that a request was given; `done` says why it is the last, if it is."""

    token: int
    done: str = ""
    log_chance: float = 0.0
    likely: Sequence[tuple[int, float]] = ()


@dataclass(eq=False)
class Request:
    """A prompt, how to go on, and whom to tell of each token."""

    prompt: Sequence[int]
    sampling: Sampling
    most: int
    ends: frozenset[int]
    tell: Callable[[Step], None]
    likely: int | None = None
    """How many of the likeliest tokens to report with each token; None: no chances at all."""
    cancelled: bool = False


@dataclass(eq=False)
class _Slot:
    """A row of the cache: what it holds, and whom it serves."""

    number: int
    held: list[int] = field(default_factory=list)
    """The tokens whose keys and values are in the cache."""
    request: Request | None = None
    sampler: Sampler | None = None
    pending: list[int] = field(default_factory=list)
    """Tokens that are still to be read: the rest of the prompt, or the token that was chosen last."""
    given: int = 0
    used: int = 0
    """When it was used last."""


class Scheduler:
    """Serves requests in the order in which they come; `waiting` says how many have no slot yet."""

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self.slots = [_Slot(number) for number in range(stepper.slots)]
        self._queue: deque[Request] = deque()
        self._clock = 0

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def running(self) -> int:
        return sum(slot.request is not None for slot in self.slots)

    def submit(self, request: Request) -> None:
        """Put a request into the queue; ArgumentError where it can never fit."""
        count = len(request.prompt)
        if not count:
            raise ArgumentError("generate", "a prompt has one token at least")
        vocabulary = self.stepper.model.vocabulary
        if not all(isinstance(token, int) and 0 <= token < vocabulary for token in request.prompt):
            raise ArgumentError("generate", f"tokens are integers from 0 to {vocabulary - 1}")
        if count >= self.stepper.positions:
            raise ArgumentError(
                "generate", f"a prompt of {count} tokens does not fit into a context of {self.stepper.positions}",
                hint="shorten it, or load the model with a longer context",
            )  # fmt: skip
        self._queue.append(request)

    def step(self) -> bool:
        """Do some work for every request; False where there is none."""
        self._assign()
        self._drop_cancelled()
        reading = [slot for slot in self.slots if slot.request is not None and len(slot.pending) > 1]
        running = [slot for slot in self.slots if slot.request is not None and len(slot.pending) == 1]
        if reading:  # the token that a prompt ends in is told before another one is computed
            self._read_prompt(min(reading, key=lambda slot: slot.used))
        if running:
            self._advance(running)
        return bool(reading or running or self._queue)

    # --- slots ------------------------------------------------------------------------------------

    def _assign(self) -> None:
        """Give free slots to waiting requests, each the one that holds most of its beginning."""
        while self._queue:
            free = [slot for slot in self.slots if slot.request is None]
            if not free:
                return
            request = self._queue.popleft()
            if request.cancelled:
                continue
            slot = max(free, key=lambda each: (_common(each.held, request.prompt), -each.used))
            kept = min(_common(slot.held, request.prompt), len(request.prompt) - 1)
            slot.held, slot.pending = slot.held[:kept], list(request.prompt[kept:])
            slot.request, slot.sampler, slot.given = request, Sampler(request.sampling, request.prompt), 0

    def _drop_cancelled(self) -> None:
        for slot in self.slots:
            if slot.request is not None and slot.request.cancelled:
                slot.request = slot.sampler = None

    def _touch(self, slot: _Slot) -> None:
        self._clock += 1
        slot.used = self._clock

    # --- work -------------------------------------------------------------------------------------

    def _read_prompt(self, slot: _Slot) -> None:
        """Read the next part of a prompt; the last part gives the first token."""
        part, slot.pending = slot.pending[:CHUNK], slot.pending[CHUNK:]
        scores = self.stepper.prompt(slot.number, len(slot.held), part)
        slot.held += part
        self._touch(slot)
        if not slot.pending:
            self._give(slot, scores)

    def _advance(self, running: Sequence[_Slot]) -> None:
        """Read the one token that each of these slots waits with, and give the next."""
        if len(running) == 1:
            (slot,) = running
            rows = [self.stepper.single(slot.number, len(slot.held), slot.pending[0])]
        else:
            positions = [min(len(slot.held), self.stepper.positions - 1) for slot in self.slots]
            tokens = [slot.pending[0] if slot in running else 0 for slot in self.slots]
            found = self.stepper.every(positions, tokens)
            rows = [found[slot.number] for slot in running]
        for slot, scores in zip(running, rows, strict=True):
            slot.held += slot.pending
            slot.pending = []
            self._touch(slot)
            self._give(slot, scores)

    def _give(self, slot: _Slot, scores: Scores) -> None:
        """Choose the next token and tell the request."""
        request, sampler = slot.request, slot.sampler
        if request is None or sampler is None:
            return
        token = sampler.choose(scores)
        slot.given += 1
        slot.pending = [token]
        done = ""
        if token in request.ends:
            done = "stop"
        elif slot.given >= request.most or len(slot.held) + 1 >= self.stepper.positions:
            done = "length"
        chance, likely = (0.0, []) if request.likely is None else log_chances(scores, token, request.likely)
        if done:
            slot.request, slot.sampler, slot.pending = None, None, []
        request.tell(Step(token, done, chance, likely))


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    """How many tokens two sequences begin with in common."""
    for count, (one, other) in enumerate(zip(left, right, strict=False)):
        if one != other:
            return count
    return min(len(left), len(right))
