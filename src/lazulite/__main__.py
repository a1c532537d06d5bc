"""`python -m lazulite` is the command line."""

from lazulite.tools.cli import run

run()
