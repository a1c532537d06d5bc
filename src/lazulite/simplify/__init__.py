"""Laws that make expressions smaller without changing a value, by theme, and the normal form they define."""

from lazulite.simplify import algebra, boolean, cast, comparison, division, index, memory
from lazulite.simplify.normal import SIMPLIFY

for theme in (
    algebra.algebra,
    cast.cast,
    boolean.boolean,
    comparison.comparison,
    index.index_rules,
    division.division,
    memory.memory,
):
    SIMPLIFY.include(theme)
