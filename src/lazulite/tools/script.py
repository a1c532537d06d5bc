"""Run a program of the user inside a command, as `python script.py` would.

What the program prints goes to stderr, so that stdout holds the command's own results.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback
from contextlib import redirect_stdout

from lazulite.base.errors import LazuliteError
from lazulite.base.terminal import say


def run_script(script: str, arguments: list[str]) -> str | None:
    """Run the program as the main module; why it failed, or None."""
    if not os.path.isfile(script):
        raise refusal("script", f"there is no file {script}")
    kept, sys.argv = sys.argv, [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    try:
        with redirect_stdout(sys.stderr):
            runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        return None if end.code in (None, 0) else f"{script} ended with {end.code}"
    except LazuliteError as error:
        say(str(error))
        return f"{script} ended with {type(error).__name__}"
    except Exception as error:
        say("".join(_traceback(error)).rstrip())
        return f"{script} ended with {type(error).__name__}"
    finally:
        sys.argv = kept
        sys.path.pop(0)
    return None


def _traceback(error: Exception) -> list[str]:
    """The traceback from the program's own lines on."""
    found = traceback.TracebackException.from_exception(error)
    inside = (__file__, runpy.__file__, "<frozen runpy>")
    found.stack[:] = [frame for frame in found.stack if frame.filename not in inside]
    return list(found.format())


def refusal(part: str, message: str, rule: str = "", hint: str = "") -> LazuliteError:
    """An error without a line: that of this file would help nobody."""
    error = LazuliteError(part, message, rule=rule, hint=hint)
    error.origins.clear()
    return error
