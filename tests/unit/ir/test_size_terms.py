"""Terms of sizes: products in one order, exact quotients, values and texts."""

from __future__ import annotations

from lazulite import Variable
from lazulite.ir.bounds import Linear, linear
from lazulite.ir.size import size_form, size_node
from lazulite.ir.size_terms import exact_quotient, product, text_of, value_of

N, M = Variable("n", 1, 10).bind(3), Variable("m", 1, 5).bind(2)


def test_a_product_is_one_term_whatever_the_order_is() -> None:
    n, m = size_form(N), size_form(M)

    assert product(n, m).terms == product(m, n).terms
    assert product(product(n, m), n).terms == product(n, product(n, m)).terms


def test_a_quotient_is_exact_or_none() -> None:
    n, m = size_form(N), size_form(M)

    assert exact_quotient(product(n, m).scaled(6), m.scaled(2)) == n.scaled(3)
    assert exact_quotient(n.scaled(3), Linear(2)) is None
    assert exact_quotient(n, m) is None
    assert exact_quotient(n, n + Linear(1)) is None


def test_a_term_tells_its_value_and_its_text() -> None:
    (term,) = linear(size_node((N * M) // 4)).terms

    assert 1 == value_of(term)
    assert "((m * n) // 4)" == text_of(term)
