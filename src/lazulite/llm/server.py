"""An HTTP server in OpenAI's form, on starlette.

Routes: /v1/models, /v1/chat/completions, /v1/completions, /v1/embeddings, /health, /metrics, and a page to chat at /.
A request is read within limits, checked (`protocol`), and answered by a `Service`.  Any failure is a
response with a status and a message; nothing of the process is shown.  When a client goes, its slot is free
with the next token.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import aclosing
from importlib.resources import files
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from lazulite.base.errors import ArgumentError
from lazulite.llm.answers import Choice, Piece, pieces
from lazulite.llm.forms import ChatForm, CompletionForm, Form
from lazulite.llm.protocol import InvalidError, Wanted, messages_of, parsed, prompts_of, wanted
from lazulite.llm.service import BusyError, Service

LARGEST_BODY = 4 << 20
"""Bytes."""
SLOWEST_BODY = 30.0
"""Seconds in which a body has to arrive."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OPEN_ROUTES = ("/", "/health")
"""What is served without a key."""
_FAILED = InvalidError("the server failed to answer", status=500, kind="server_error")
T = TypeVar("T")
Handler = Callable[[Request], Awaitable[Response]]


def application(service: Service, *, key: str | None = None, hosts: Sequence[str] = LOOPBACK) -> Starlette:
    """The server as an ASGI application.

    `key` is what clients have to send as ``Authorization: Bearer KEY``; `hosts` are the names by which they may
    call the server ("*": any), so that no page from elsewhere reaches it through a name of its own.
    """
    server = _Server(service)
    routes: list[tuple[str, str, Handler]] = [
        ("/", "GET", server.page), ("/health", "GET", server.health), ("/metrics", "GET", server.metrics),
        ("/v1/models", "GET", server.models), ("/v1/chat/completions", "POST", server.chat),
        ("/v1/completions", "POST", server.complete), ("/v1/embeddings", "POST", server.embed),
    ]  # fmt: skip
    guarded = [Route(path, _guarded(handler, path, key, hosts), methods=[m]) for path, m, handler in routes]
    return Starlette(routes=guarded)


# --- who may call, and what a failure looks like ---------------------------------------------------


def _guarded(handler: Handler, path: str, key: str | None, hosts: Sequence[str]) -> Handler:
    """The handler for clients that may call, with every failure as a response."""

    async def handle(request: Request) -> Response:
        try:
            _require_host(request, hosts)
            if key is not None and path not in _OPEN_ROUTES:
                _require_key(request, key)
            return await handler(request)
        except InvalidError as error:
            return JSONResponse(error.body(), error.status)
        except ArgumentError as error:
            return JSONResponse(InvalidError(error.message).body(), 400)
        except BusyError:
            busy = InvalidError("too many requests are waiting", kind="rate_limit_error")
            return JSONResponse(busy.body(), 429, {"Retry-After": "1"})
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception:  # whatever it is, it stays in here
            return JSONResponse(_FAILED.body(), _FAILED.status)

    return handle


def _require_host(request: Request, hosts: Sequence[str]) -> None:
    name = request.headers.get("host", "").strip()
    name = name[1 : name.index("]")] if name.startswith("[") and "]" in name else name.partition(":")[0]
    if "*" not in hosts and name.lower() not in hosts:
        raise InvalidError("this name is not served here", status=421)


def _require_key(request: Request, key: str) -> None:
    given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    if not hmac.compare_digest(given.encode(), key.encode()):
        raise InvalidError("the key is missing or wrong", status=401, kind="authentication_error")


async def _body(request: Request) -> dict[str, Any]:
    """The object in the body, read within the limits."""
    data = bytearray()

    async def read() -> None:
        async for part in request.stream():
            data.extend(part)
            if len(data) > LARGEST_BODY:
                raise InvalidError(f"the body is larger than {LARGEST_BODY} bytes", status=413)

    try:
        await asyncio.wait_for(read(), SLOWEST_BODY)
    except TimeoutError:
        raise InvalidError("the body does not arrive", status=408) from None
    found: dict[str, Any] = await run_in_threadpool(parsed, bytes(data))
    return found


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of some work, which is given up when the client goes."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    doing, leaving = asyncio.create_task(work), asyncio.create_task(gone())
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ClientDisconnect
        return doing.result()
    finally:
        for task in (doing, leaving):
            task.cancel()
        await asyncio.gather(doing, leaving, return_exceptions=True)


# --- the routes --------------------------------------------------------------------------------------


class _Server:
    """The handlers of the routes."""

    def __init__(self, service: Service) -> None:
        self.service, self.started = service, int(time.time())
        self.html = files("lazulite.llm").joinpath("page.html").read_text(encoding="utf-8")

    async def page(self, _: Request) -> Response:
        policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"
        return HTMLResponse(self.html, headers={"Content-Security-Policy": policy, "X-Frame-Options": "DENY"})

    async def health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def metrics(self, _: Request) -> Response:
        return PlainTextResponse("\n".join(_metric_lines(self.service)) + "\n", media_type="text/plain; version=0.0.4")

    async def models(self, _: Request) -> Response:
        transformer = self.service.transformer
        entry = {
            "id": transformer.name, "object": "model", "created": self.started, "owned_by": "lazulite",
            "context_length": transformer.stepper.positions, "family": transformer.config.family,
        }  # fmt: skip
        return JSONResponse({"object": "list", "data": [entry]})

    async def chat(self, request: Request) -> Response:
        body = await _body(request)
        how, messages = wanted(body, chat=True), messages_of(body)
        facts = {"tools": body["tools"]} if isinstance(body.get("tools"), list) else {}
        prompt = await run_in_threadpool(self.service.transformer.chat_tokens, messages, **facts)
        return await self._answer(request, ChatForm, [prompt], how)

    async def complete(self, request: Request) -> Response:
        body = await _body(request)
        how = wanted(body, chat=False)
        prompts = await run_in_threadpool(self._tokens, prompts_of(body, "prompt"))
        return await self._answer(request, CompletionForm, prompts, how)

    async def embed(self, request: Request) -> Response:
        body = await _body(request)
        if body.get("encoding_format", "float") != "float":
            raise InvalidError("only the encoding format 'float' is served", "encoding_format")
        texts = await run_in_threadpool(self._tokens, prompts_of(body, "input"))
        self._require_room(texts, "input")
        rows = await _while_connected(request, self._embeddings(texts))
        data = [{"object": "embedding", "index": number, "embedding": row} for number, row in enumerate(rows)]
        count = sum(map(len, texts))
        total = {"prompt_tokens": count, "total_tokens": count}
        return JSONResponse({"object": "list", "model": self.service.transformer.name, "data": data, "usage": total})

    async def _embeddings(self, texts: Sequence[Sequence[int]]) -> list[list[float]]:
        return [await self.service.embedding(tokens) for tokens in texts]

    def _tokens(self, texts: Sequence[str | list[int]]) -> list[list[int]]:
        encode = self.service.transformer.tokenizer.encode
        return [encode(text) if isinstance(text, str) else text for text in texts]

    def _require_room(self, texts: Sequence[Sequence[int]], field: str) -> None:
        room = self.service.transformer.stepper.positions
        for text in texts:
            if not 0 < len(text) < room:
                raise InvalidError(f"a text of {len(text)} tokens does not fit into a context of {room}", field)

    # --- texts --------------------------------------------------------------------------------------

    async def _answer(
        self, request: Request, kind: type[Form], prompts: Sequence[Sequence[int]], how: Wanted
    ) -> Response:
        transformer = self.service.transformer
        self._require_room(prompts, "messages" if kind is ChatForm else "prompt")
        form, most = kind(transformer.tokenizer, transformer.name), how.most or transformer.stepper.positions
        if not how.stream:
            choices = await _while_connected(request, self._whole(prompts, how, most))
            return JSONResponse(form.whole(choices, sum(map(len, prompts))))
        if len(prompts) > 1:
            raise InvalidError("several prompts cannot be streamed", "prompt")
        found = pieces(self.service, prompts[0], how, most)
        first = await anext(found)  # what is refused is told before the stream begins
        events = _events(form, first, found, len(prompts[0]), how.usage)
        return StreamingResponse(events, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def _whole(self, prompts: Sequence[Sequence[int]], how: Wanted, most: int) -> list[Choice]:
        """All choices for all prompts."""
        result: list[Choice] = []
        for prompt in prompts:
            choices = [Choice() for _ in range(how.choices)]
            async with aclosing(pieces(self.service, prompt, how, most)) as found:
                async for piece in found:
                    choices[piece.choice].add(piece)
            result += choices
        return result


async def _events(
    form: Form, first: Piece, rest: AsyncIterator[Piece], prompt: int, tell_usage: bool
) -> AsyncIterator[str]:
    """The events of a streamed answer."""
    generated = first.tokens
    yield _event(form.piece(first))
    try:
        async for piece in rest:
            generated += piece.tokens
            yield _event(form.piece(piece))
        if tell_usage:
            yield _event(form.last(prompt, generated))
    except Exception:  # the status is out already
        yield _event(_FAILED.body())
    yield "data: [DONE]\n\n"


def _event(content: dict[str, Any]) -> str:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n"


def _metric_lines(service: Service) -> Iterator[str]:
    """The figures in Prometheus' text form."""
    figures = service.figures
    counters = {
        "requests_total": figures.requests, "refused_total": figures.refused, "failed_total": figures.failed,
        "prompt_tokens_total": figures.prompt_tokens, "generated_tokens_total": figures.generated_tokens,
        "busy_seconds_total": round(figures.seconds, 3),
    }  # fmt: skip
    gauges = {"requests_running": service.running, "requests_waiting": service.queued}
    for kind, values in (("counter", counters), ("gauge", gauges)):
        for name, value in values.items():
            yield f"# TYPE lazulite_{name} {kind}"
            yield f"lazulite_{name} {value}"
