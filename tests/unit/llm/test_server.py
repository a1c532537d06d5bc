"""The server survives any request, and serves each as if it were alone."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from lazulite.llm.answers import pieces
from lazulite.llm.protocol import wanted
from lazulite.llm.server import LARGEST_BODY, application
from lazulite.llm.service import Service
from support.language_models import tiny

CHAT = "/v1/chat/completions"
HI = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 6, "temperature": 0}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    found = Service(tiny(slots=3), waiting=40)
    yield found
    found.close()


def run(service: Service, talk: Any, **facts: Any) -> Any:
    """Let a coroutine talk to the server."""

    async def main() -> Any:
        transport = httpx.ASGITransport(application(service, **facts))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080", timeout=120) as client:
            return await talk(client)

    return asyncio.run(main())


def posted(service: Service, path: str, body: Any, **facts: Any) -> httpx.Response:
    headers = facts.pop("headers", None)

    async def send(client: httpx.AsyncClient) -> httpx.Response:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await client.post(path, content=content, headers=headers)

    found: httpx.Response = run(service, send, **facts)
    return found


def events(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines.pop() == "[DONE]"
    return [json.loads(line) for line in lines]


# --- answers -----------------------------------------------------------------------------------------


def test_a_question_is_answered_in_openais_form(service: Service) -> None:
    found = posted(service, CHAT, HI).json()
    choice = found["choices"][0]
    model = service.transformer
    prompt = model.chat_tokens(HI["messages"])
    expected = model.tokenizer.decode(list(tiny().generate(prompt, 6)))

    assert ("chat.completion", expected) == (found["object"], choice["message"]["content"])
    assert {"prompt_tokens": len(prompt), "completion_tokens": 6, "total_tokens": len(prompt) + 6} == found["usage"]


def test_a_streamed_answer_is_the_whole_one_in_pieces(service: Service) -> None:
    whole = posted(service, CHAT, HI).json()
    streamed = events(posted(service, CHAT, {**HI, "stream": True, "stream_options": {"include_usage": True}}))
    text = "".join(event["choices"][0]["delta"]["content"] for event in streamed if event["choices"])

    assert whole["choices"][0]["message"]["content"] == text
    assert whole["usage"] == streamed[-1]["usage"]
    assert ["length"] == [e["choices"][0]["finish_reason"] for e in streamed[:-1] if e["choices"][0]["finish_reason"]]


def test_a_prompt_is_continued(service: Service) -> None:
    body = {"prompt": [[1, 2, 3], "the"], "max_tokens": 3, "temperature": 0, "logprobs": 2, "n": 2}
    found = posted(service, "/v1/completions", body).json()

    assert [0, 1, 2, 3] == [choice["index"] for choice in found["choices"]]
    assert found["choices"][0]["text"] == found["choices"][1]["text"]
    assert 3 == len(found["choices"][0]["logprobs"]["token_logprobs"])
    assert 12 == found["usage"]["completion_tokens"]


def test_a_stop_string_ends_the_text_before_it(service: Service) -> None:
    full = posted(service, CHAT, {**HI, "max_tokens": 30}).json()["choices"][0]["message"]["content"]
    stop = full[3:5]
    choice = posted(service, CHAT, {**HI, "max_tokens": 30, "stop": stop}).json()["choices"][0]

    assert (full[: full.index(stop)], "stop") == (choice["message"]["content"], choice["finish_reason"])


def test_an_embedding_is_a_row_of_numbers(service: Service) -> None:
    found = posted(service, "/v1/embeddings", {"input": ["the", "cat"]}).json()

    assert [32, 32] == [len(entry["embedding"]) for entry in found["data"]]


def test_the_other_routes_tell_about_the_server(service: Service) -> None:
    async def talk(client: httpx.AsyncClient) -> list[httpx.Response]:
        return [await client.get(path) for path in ("/", "/health", "/v1/models", "/metrics", "/nothing")]

    page, health, models, metrics, nothing = run(service, talk)

    assert (
        "text/html" in page.headers["content-type"] and "default-src 'none'" in page.headers["content-security-policy"]
    )
    assert "http" not in page.text.replace("http-equiv", "")
    assert ({"status": "ok"}, "tiny") == (health.json(), models.json()["data"][0]["id"])
    assert "lazulite_generated_tokens_total" in metrics.text
    assert 404 == nothing.status_code


# --- who may call ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("given", "status"), [(None, 401), ("Bearer wrong", 401), ("Bearer secret", 200)])
def test_a_key_is_asked_for(service: Service, given: str | None, status: int) -> None:
    headers = {"Authorization": given} if given else None

    assert status == posted(service, CHAT, HI, key="secret", headers=headers).status_code


def test_a_name_of_somebody_else_is_not_served(service: Service) -> None:
    assert 421 == posted(service, CHAT, HI, headers={"Host": "evil.example"}).status_code
    assert 200 == posted(service, CHAT, HI, headers={"Host": "evil.example"}, hosts=("*",)).status_code


# --- requests that make no sense -----------------------------------------------------------------------

SAID = [{"role": "user", "content": "hi"}]
BAD: list[Any] = [
    b"", b"{", b"[]", b"\xff\xfe", b"[" * 100000, b'{"a":' * 5000, {}, {"messages": []}, {"messages": "hi"},
    {"messages": [5]}, {"messages": [{"role": "king", "content": "hi"}]}, {"messages": [{"content": "hi"}]},
    {"messages": [{"role": "user", "content": 5}]}, {"messages": [{"role": "user", "content": [{"type": "image"}]}]},
    {"messages": SAID * 2000}, {"messages": [{"role": "user", "content": "x" * 100000}]},
    *[{"messages": SAID, **bad} for bad in (
        {"temperature": -1}, {"temperature": "hot"}, {"temperature": True}, {"temperature": 1e999}, {"top_p": 2},
        {"top_k": -1}, {"top_k": 1.5}, {"n": 0}, {"n": 1000}, {"n": "1"}, {"max_tokens": 0}, {"max_tokens": -5},
        {"max_tokens": 10**30}, {"stop": 5}, {"stop": [5]}, {"stop": ["a"] * 99}, {"seed": "x"}, {"seed": 1 << 70},
        {"stream": "yes"}, {"stream_options": 5, "stream": True}, {"logprobs": 3},
        {"top_logprobs": 99, "logprobs": True},
        {"logit_bias": {"x": 1}}, {"logit_bias": [1]}, {"logit_bias": {"1": None}}, {"presence_penalty": 1e300},
        {"response_format": {"type": "json_object"}}, {"min_p": -0.1}, {"repetition_penalty": 0})],
]  # fmt: skip


@pytest.mark.parametrize("body", BAD, ids=lambda body: repr(body)[:60])
def test_a_bad_request_is_told_what_is_wrong(service: Service, body: Any) -> None:
    found = posted(service, CHAT, body)

    assert 400 == found.status_code
    assert {"message", "type", "param", "code"} == found.json()["error"].keys()
    assert "Traceback" not in found.text and "0x" not in found.text and ".py" not in found.text


BAD_PROMPTS = [5, [], [[]], [-1], [10**9], ["a"] * 999, None]


@pytest.mark.parametrize("body", [*({"prompt": bad} for bad in BAD_PROMPTS), {"prompt": ["a", "b"], "stream": True}])
def test_a_bad_prompt_is_refused(service: Service, body: Any) -> None:
    assert 400 == posted(service, "/v1/completions", body).status_code


def test_a_body_that_is_too_large_is_not_read(service: Service) -> None:
    assert 413 == posted(service, CHAT, b" " * (LARGEST_BODY + 1)).status_code


def test_a_fault_stays_inside_and_the_next_request_is_served(service: Service, monkeypatch: Any) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("secret at 0x7f00")

    with monkeypatch.context() as patch:
        patch.setattr(service.transformer.scheduler, "_assign", broken)
        found = posted(service, CHAT, HI)
    assert 500 == found.status_code and "secret" not in found.text

    assert 200 == posted(service, CHAT, HI).status_code


# --- many at once --------------------------------------------------------------------------------------


def test_many_clients_get_what_each_gets_alone(service: Service) -> None:
    """Sixteen at once, of whom some leave: the others' texts are as if each was alone, and all slots are free."""
    questions = [f"question {number} " * (number % 5 + 1) for number in range(16)]
    bodies = [{**HI, "messages": [{"role": "user", "content": question}]} for question in questions]
    alone = [posted(service, CHAT, body).json()["choices"][0]["message"]["content"] for body in bodies]
    draws = random.Random(0)

    async def ask(client: httpx.AsyncClient, number: int) -> str | None:
        if number % 4 == 3:  # leaves after a while
            task = asyncio.create_task(client.post(CHAT, json={**bodies[number], "max_tokens": 60}))
            await asyncio.sleep(draws.random() * 0.2)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return None
        response = await client.post(CHAT, json=bodies[number])
        return str(response.json()["choices"][0]["message"]["content"])

    async def talk(client: httpx.AsyncClient) -> list[str | None]:
        return await asyncio.gather(*[ask(client, number) for number in range(16)])

    together = run(service, talk)

    assert [text for number, text in enumerate(alone) if number % 4 != 3] == [t for t in together if t is not None]
    _wait_for(lambda: (service.running, service.queued) == (0, 0))


def test_a_full_queue_is_told_at_once() -> None:
    small = Service(tiny(slots=1), waiting=1)

    async def talk(client: httpx.AsyncClient) -> list[int]:
        answers = await asyncio.gather(*[client.post(CHAT, json={**HI, "max_tokens": 20}) for _ in range(8)])
        return sorted(answer.status_code for answer in answers)

    statuses = run(small, talk)
    small.close()

    assert {200, 429} == set(statuses)


def test_who_leaves_frees_the_slot_with_the_next_token(service: Service) -> None:
    async def leave() -> None:
        found = pieces(service, [1, 2, 3], wanted({"max_tokens": 100}, chat=True), 100)
        await anext(found)
        await found.aclose()

    for _ in range(5):
        asyncio.run(leave())
    _wait_for(lambda: service.running == 0)


def _wait_for(condition: Any) -> None:
    end = time.monotonic() + 30
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()
