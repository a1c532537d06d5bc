"""``python -m lazulite.interop.tinygrad script.py args..``: run a script written for tinygrad."""

import os
import runpy
import sys

from lazulite.interop.tinygrad.modules import install

if __name__ == "__main__":
    arguments = sys.argv[1:]
    if not arguments or arguments[0].startswith("-"):
        sys.exit("usage: python -m lazulite.interop.tinygrad script.py [arguments ...]")
    if not os.path.isfile(arguments[0]):
        print(f"there is no file {arguments[0]}", file=sys.stderr)
        sys.exit(1)
    install()
    sys.argv = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")
