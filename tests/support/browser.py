"""A headless Chromium that tests talk to over its debugging pipe, without any further package."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from typing import Any

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)
_READ, _WRITE = 3, 4
"""The descriptors on which Chromium reads commands and writes answers."""


class Page:
    """One page; `evaluate` runs JavaScript in it."""

    def __init__(self, url: str) -> None:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs, self._out = os.pipe()
        self._in, answers = os.pipe()
        command = [
            CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
            f"--user-data-dir={self._folder.name}", "--remote-debugging-pipe", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" {_READ}<&{theirs} {_WRITE}>&{answers}', "bash", *command],
            pass_fds=(theirs, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs)
        os.close(answers)
        self._held, self._numbers = b"", itertools.count(1)
        target = self._ask("Target.createTarget", {"url": url})["targetId"]
        self._session = self._ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._folder.cleanup()

    def evaluate(self, source: str) -> Any:
        """The value of an expression."""
        facts = {"expression": source, "returnByValue": True, "awaitPromise": True}
        return self._ask("Runtime.evaluate", facts, session=self._session)["result"].get("value")

    def wait_for(self, source: str, seconds: float = 60.0) -> None:
        """Return when an expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(source):
            assert time.monotonic() < end, f"never: {source}"
            time.sleep(0.05)

    def _ask(self, method: str, facts: dict[str, Any], session: str = "") -> Any:
        number = next(self._numbers)
        question = {"id": number, "method": method, "params": facts, **({"sessionId": session} if session else {})}
        os.write(self._out, json.dumps(question).encode() + b"\0")
        while True:
            while b"\0" not in self._held:
                part = os.read(self._in, 1 << 16)
                assert part, "the browser has ended"
                self._held += part
            line, _, self._held = self._held.partition(b"\0")
            answer = json.loads(line)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
