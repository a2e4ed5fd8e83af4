"""Habits of naming decide only where nothing measured does."""

from types import SimpleNamespace

import numpy as np

from regard.check.repair.habits import joins_in_order, likeness, usual


def rival(source: str, value: float = 0.0) -> SimpleNamespace:
    return SimpleNamespace(source=source, outputs=(np.full(3, value),))


def test_names_are_joined_in_the_order_in_which_they_were_named() -> None:
    usual_one = rival("def f(ahead, back):\n    return cat([ahead, back])", 1.0)
    odd_one = rival("def f(ahead, back):\n    return cat([back, ahead])", 2.0)
    assert usual([odd_one, usual_one], None) == [usual_one]


def test_where_all_rivals_break_a_habit_all_are_kept() -> None:
    odd_ones = [rival("def f(a, b):\n    return cat([b, a])", n) for n in (1.0, 2.0)]
    assert usual(odd_ones, None) == odd_ones


def test_a_repair_that_keeps_right_results_is_preferred() -> None:
    before = [np.full(3, 5.0)]
    same, other = rival("x = 1", 5.0), rival("x = 2", 6.0)
    assert usual([other, same], before) == [same]
    assert usual([other, same], None) == [other, same]


def test_what_is_named_alike_belongs_together() -> None:
    assert likeness("v = self.fold(self.v(values))") > likeness("v = self.fold(self.v(keys))")
    assert likeness("p = (past_key, key)") > likeness("p = (past_value, key)")


def test_an_odd_order_outside_of_a_join_is_no_matter() -> None:
    assert joins_in_order("def f(a, b):\n    return g([b, a])")
