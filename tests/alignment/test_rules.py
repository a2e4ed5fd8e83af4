import numpy as np
import pytest

from regard.alignment import Alignment
from regard.alignment.extract import agreeing, entropic, itermax, mutual
from regard.alignment.rules import RULES, links_by, shifted
from regard.alignment.symmetrize import symmetrize
from regard.errors import InputError, ShapeError

FORWARD = Alignment([[0.9, 0.1, 0.0], [0.35, 0.25, 0.4]], ["x", "y"], ["a", "b", "c"])
BACKWARD = Alignment([[0.8, 0.2], [0.6, 0.4], [0.1, 0.9]], ["a", "b", "c"], ["x", "y"])


def test_one_direction_gives_its_largest_or_its_large_weights():
    assert links_by("argmax", FORWARD) == {(0, 0), (2, 1)}
    assert links_by("threshold", FORWARD, least=0.35) == {(0, 0), (0, 1), (2, 1)}
    assert links_by("threshold", FORWARD) == links_by("threshold", FORWARD, least=0.3)


def test_two_directions_are_turned_and_combined():
    back = {(0, 0), (1, 0), (2, 1)}
    for method in ("intersection", "union", "grow-diag"):
        wanted = symmetrize(frozenset({(0, 0), (2, 1)}), frozenset(back), method)
        assert links_by("argmax", FORWARD, BACKWARD, method=method) == wanted
    assert links_by("argmax", FORWARD, BACKWARD, method="union") == back


@pytest.mark.parametrize(
    ("rule", "function"),
    [("mutual", mutual), ("agreeing", agreeing), ("itermax", itermax), ("entropic", entropic)],
)
def test_rules_of_both_are_those_of_their_functions(rule, function):
    assert links_by(rule, FORWARD, BACKWARD) == function(FORWARD.weights, BACKWARD.weights.T)
    with pytest.raises(InputError, match="compares two directions"):
        links_by(rule, FORWARD)


def test_what_does_not_go_together_is_refused():
    assert set(RULES) == {"argmax", "threshold", "mutual", "agreeing", "itermax", "entropic"}
    with pytest.raises(InputError, match="`rule` is unknown"):
        links_by("best", FORWARD)
    with pytest.raises(InputError, match="no least weight"):
        links_by("argmax", FORWARD, least=0.5)
    with pytest.raises(ShapeError, match="`backward` does not fit"):
        links_by("mutual", FORWARD, FORWARD)


def test_a_shift_reads_later_rows_and_leaves_the_last_without_one():
    rows = np.eye(5)[:3]
    given = Alignment(rows, list("xyz"), list("abcde"), {"model": "m"})
    late = shifted(given, 1)
    np.testing.assert_array_equal(late.weights, [rows[1], rows[2], np.zeros(5)])
    np.testing.assert_array_equal(shifted(given, -2).weights, [np.zeros(5)] * 2 + [rows[0]])
    assert shifted(given, 0) == given
    assert not shifted(given, 7).weights.any()
    assert not shifted(given, -7).weights.any()
