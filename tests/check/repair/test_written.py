"""Replacing an expression changes that expression and nothing around it."""

import ast

import pytest

from regard.check.repair.candidate import patched
from regard.check.repair.written import Written

PLACES = (
    *("HERE * b", "a - HERE", "HERE ** 2", "a ** HERE", "-HERE", "not HERE", "HERE.T"),
    *("HERE[0]", "x[HERE]", "f(HERE)", "f(a, k=HERE)", "a @ HERE @ b", "HERE if c else d"),
    *("c if HERE else d", "HERE < b", "HERE and b", "[HERE, b]", "(HERE).sum()"),
    *("f(*HERE)", "lambda t: HERE", "[t for t in HERE]", "a / (HERE)"),
)
TEXTS = ("x", "a + b", "a if b else c", "~m", "x[:, None]", "f(a) * 2", "a < b", "lambda q: q")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", TEXTS)
def test_an_expression_put_in_a_place_stays_one_expression(place: str, text: str) -> None:
    written = Written(f"r = {place}")
    node = next(n for n in written.nodes if isinstance(n, ast.Name) and n.id == "HERE")
    span = written.put(node, text)
    assert span is not None
    expected = place.replace("HERE", f"({text})")
    got = ast.parse(patched(written.source, [span]))
    assert ast.dump(got) == ast.dump(ast.parse(f"r = {expected}"))


def test_parentheses_are_not_doubled() -> None:
    written = Written("r = (a + b).sum()")
    node = next(n for n in written.nodes if isinstance(n, ast.BinOp))
    span = written.put(node, "a - b")
    assert span is not None
    assert patched(written.source, [span]) == "r = (a - b).sum()"


def test_what_is_no_expression_is_not_put() -> None:
    written = Written("r = a")
    assert written.put(written.nodes[-1], "a b") is None


def test_columns_count_characters_where_names_are_not_ascii() -> None:
    written = Written("ü = 'ä' ; ñ = ö")
    node = next(n for n in written.nodes if isinstance(n, ast.Name) and n.id == "ö")
    assert written.text(node) == "ö"
