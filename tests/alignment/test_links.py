import pytest

from regard.alignment.links import Gold, link_set
from regard.errors import InputError


def test_sure_links_are_possible_too() -> None:
    gold = Gold.of([(0, 0), (2, 1)], [(3, 4)])
    assert gold.sure == {(0, 0), (2, 1)}
    assert gold.possible == {(0, 0), (2, 1), (3, 4)}


def test_turned_twice_is_the_same() -> None:
    gold = Gold.of([(0, 5)], [(3, 1)])
    assert gold.turned() == Gold.of([(5, 0)], [(1, 3)])
    assert gold.turned().turned() == gold


def test_a_sure_link_outside_the_possible_ones_is_refused() -> None:
    with pytest.raises(InputError) as error:
        Gold(frozenset({(1, 2)}), frozenset({(1, 3)}))
    assert str(error.value) == (
        "Gold(): a sure link is not among the possible ones\n"
        "  expected  every sure link in `possible` too\n"
        "  got       the sure link (1, 2)\n"
        "  help      Gold.of(sure, only_possible) adds them"
    )


@pytest.mark.parametrize("link", [(1,), (1, 2, 3), (-1, 0), (0.5, 1), "ab", None, 7])
def test_what_is_no_pair_of_positions_is_refused(link: object) -> None:
    with pytest.raises(InputError, match="a link is no pair of positions"):
        link_set([(0, 0), link])  # type: ignore[list-item]
