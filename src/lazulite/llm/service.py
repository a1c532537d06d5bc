"""A model behind a queue: one thread computes, any number of coroutines wait for tokens.

The thread owns the scheduler.  Whatever goes wrong in a step ends the requests that were running with an
error, and the thread goes on with the next ones.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

from lazulite.base.errors import LazuliteError
from lazulite.base.terminal import say
from lazulite.llm.batching import Request, Step
from lazulite.llm.sampling import Sampling
from lazulite.llm.transformer import Transformer


class BusyError(Exception):
    """So many requests wait that no more are taken."""


class BrokenError(Exception):
    """The step that computed the answer failed."""


@dataclass
class Figures:
    """What a service has done, for those who watch it."""

    requests: int = 0
    refused: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    generated_tokens: int = 0
    seconds: float = 0.0
    """Time in which there was work."""


class Service:
    """Runs the requests of many clients on one model; `waiting` bounds how many may wait for a slot."""

    def __init__(self, transformer: Transformer, waiting: int = 64) -> None:
        self.transformer, self.limit, self.figures = transformer, waiting, Figures()
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._open: set[_Answer] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="lazulite-llm", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop after the step that runs now."""
        self._inbox.put(None)
        self._thread.join()

    @property
    def queued(self) -> int:
        """Requests that wait for a slot."""
        return max(len(self._open) - len(self.transformer.scheduler.slots), 0)

    @property
    def running(self) -> int:
        """Slots in use."""
        return self.transformer.scheduler.running

    async def answer(
        self, prompt: Sequence[int], sampling: Sampling, most: int, likely: int | None = None
    ) -> AsyncGenerator[Step, None]:
        """The tokens of an answer as they come.  Closing the iterator frees the slot with the next token."""
        with self._lock:
            if self.queued >= self.limit:
                self.figures.refused += 1
                raise BusyError
            answer = _Answer(asyncio.get_running_loop())
            self._open.add(answer)
            self.figures.requests += 1
            self.figures.prompt_tokens += len(prompt)
        request = Request(prompt, sampling, most, self.transformer.tokenizer.ends, answer.tell, likely)
        self._inbox.put(lambda: self._submit(request, answer))
        try:
            while True:
                step = await answer.steps.get()
                if isinstance(step, LazuliteError):
                    raise step
                if step is None:
                    raise BrokenError
                self.figures.generated_tokens += 1
                yield step
                if step.done:
                    return
        finally:
            request.cancelled = True
            self._open.discard(answer)

    async def embedding(self, tokens: Sequence[int]) -> list[float]:
        """The mean of the hidden states of a text, of length 1."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[float]] = loop.create_future()

        def compute() -> None:
            try:
                row = self.transformer.stepper.embedding(tokens)
            except Exception:  # the process lives, and the client hears of a failure
                self.figures.failed += 1
                loop.call_soon_threadsafe(_settle, found, None)
            else:
                loop.call_soon_threadsafe(_settle, found, row)

        self.figures.requests += 1
        self.figures.prompt_tokens += len(tokens)
        self._inbox.put(compute)
        return await found

    # --- in the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        scheduler = self.transformer.scheduler
        busy = False
        while True:
            try:
                order = self._inbox.get_nowait() if busy else self._inbox.get()
            except queue.Empty:
                pass
            else:
                if order is None:
                    return
                order()
                busy = True
                continue
            begin = time.monotonic()
            try:
                busy = scheduler.step()
            except Exception as error:  # the process lives, whatever a step does
                self.figures.failed += 1
                self._fail(error)
            self.figures.seconds += time.monotonic() - begin

    def _submit(self, request: Request, answer: _Answer) -> None:
        try:
            self.transformer.scheduler.submit(request)
        except LazuliteError as error:
            answer.tell(error)

    def _fail(self, error: Exception) -> None:
        """End everything that runs, forget what the cache holds, and tell whoever watches the process why."""
        say(f"lazulite: a step of the model failed: {type(error).__name__}: {error}")
        for slot in self.transformer.scheduler.slots:
            slot.request = slot.sampler = None
            slot.held, slot.pending = [], []
        for answer in list(self._open):
            answer.tell(None)


def _settle(future: asyncio.Future[list[float]], row: list[float] | None) -> None:
    if future.done():
        return
    if row is None:
        future.set_exception(BrokenError())
    else:
        future.set_result(row)


class _Answer:
    """What one coroutine waits for; `tell` may be called from any thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.steps: asyncio.Queue[Step | LazuliteError | None] = asyncio.Queue()

    def tell(self, step: Step | LazuliteError | None) -> None:
        """Hand over a token, the reason why there is none, or None for a fault."""
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self.steps.put_nowait, step)
