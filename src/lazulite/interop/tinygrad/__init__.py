"""Programs written for tinygrad, unchanged: its modules by name, made of what Lazulite has.

``python -m lazulite.interop.tinygrad script.py args..`` runs a script in which ``import tinygrad`` means this.
`install` does the same for the process that calls it.  The modules hold adapters only; which name stands for
what is told in `modules.MODULES`.
"""

from lazulite.interop.tinygrad.modules import install as install
