"""The page to chat, in a real browser: it answers, renders Markdown as text, stops, and calls nobody else."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from lazulite.llm.server import application
from lazulite.llm.service import Service
from support.browser import CHROMIUM, Page
from support.language_models import tiny

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not CHROMIUM, reason="notyet: there is no Chromium on this machine")]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    uvicorn: Any = pytest.importorskip("uvicorn")
    service = Service(tiny(slots=2, context=1000))
    server = uvicorn.Server(uvicorn.Config(application(service), host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.05)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join()
    service.close()


@pytest.fixture
def page(address: str) -> Iterator[Page]:
    with Page(address) as found:
        found.wait_for("document.readyState === 'complete' && at('model').textContent.includes('tiny')")
        yield found


def ask(page: Page, text: str, most: int) -> None:
    page.evaluate(f"at('max_tokens').value = {most}; at('temperature').value = 0; at('text').value = {text!r};"
                  "at('form').requestSubmit()")  # fmt: skip


def test_a_question_gets_an_answer_and_tells_how_fast(page: Page) -> None:
    ask(page, "hello", 8)
    page.wait_for("!running && document.querySelector('.note') !== null")

    assert "hello" == page.evaluate("document.querySelector('.user').textContent")
    assert "8 tokens" in page.evaluate("document.querySelector('.note').textContent")
    assert ["user", "assistant"] == page.evaluate("history.map(m => m.role)")


def test_an_answer_can_be_stopped(page: Page) -> None:
    ask(page, "go on", 900)
    page.wait_for("running && document.querySelector('.assistant').textContent.length > 5")
    page.evaluate("at('stop').click()")
    page.wait_for("!running && at('stop').hidden && !at('send').disabled")

    assert page.evaluate("document.querySelector('.error') === null")


def test_an_error_of_the_server_is_shown(page: Page) -> None:
    ask(page, "hello", -5)
    page.wait_for("document.querySelector('.error') !== null")

    assert "max_tokens" in page.evaluate("document.querySelector('.error').textContent")


def test_markdown_is_rendered_and_html_stays_text(page: Page) -> None:
    lines = ["# Title", "", "some **bold** and `code`", "", "- one", "- two", "", "```", "x < y", "```",
             "<img src=x onerror=alert(1)><script>1</script>"]  # fmt: skip
    made = f"d.append(markdown({json.dumps(chr(10).join(lines))}))"
    html = page.evaluate(f"(() => {{ const d = document.createElement('div'); {made}; return d.innerHTML }})()")

    assert "<strong>bold</strong>" in html and "<code>code</code>" in html and "<li>two</li>" in html
    assert "<pre><code>x &lt; y</code></pre>" in html
    assert "<img" not in html and "<script" not in html


def test_the_page_asks_this_server_only(page: Page, address: str) -> None:
    names = page.evaluate("performance.getEntriesByType('resource').map(entry => entry.name)")

    assert names and all(name.startswith(address) for name in names)
