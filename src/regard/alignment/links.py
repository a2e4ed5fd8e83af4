"""Hard links between two sentences, as people annotate them and as systems propose them."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, TypeAlias

from regard.errors import InputError, explain

__all__ = ["NO_WORD", "Gold", "Link", "Links", "link_set"]

NO_WORD = "∅"
"""What a matrix's column is called that stands for no word at all."""

Link: TypeAlias = tuple[int, int]
"""A source position and a target position, both counted from 0."""

Links: TypeAlias = frozenset[Link]
"""The links of one sentence pair. A word without any is linked to nothing."""


@dataclass(frozen=True)
class Gold:
    """The links that annotators gave one sentence pair.

    Parameters
    ----------
    sure : set of (source, target)
        Every annotator's, or those marked as certain.
    possible : set of (source, target)
        All that are acceptable; the sure ones are among them [1]_.

    Raises
    ------
    InputError
        A sure link is not possible.

    References
    ----------
    .. [1] Och and Ney, "A Systematic Comparison of Various Statistical Alignment Models",
       Computational Linguistics 29(1), 2003, section 6.
    """

    sure: Links
    possible: Links

    def __post_init__(self) -> None:
        outside = sorted(self.sure - self.possible)
        if outside:
            raise InputError(
                explain(
                    "Gold(): a sure link is not among the possible ones",
                    expected="every sure link in `possible` too",
                    got=f"the sure link {outside[0]}",
                    help="Gold.of(sure, only_possible) adds them",
                )
            )

    @classmethod
    def of(cls, sure: Iterable[Link], only_possible: Iterable[Link] = ()) -> Self:
        """Build gold links from the sure ones and those that are possible only."""
        certain = link_set(sure)
        return cls(certain, certain | link_set(only_possible))

    def turned(self) -> "Gold":
        """Return the same links with source and target exchanged."""
        return Gold(
            frozenset((t, s) for s, t in self.sure),
            frozenset((t, s) for s, t in self.possible),
        )


def link_set(links: Iterable[Link]) -> Links:
    """Return links as a set.

    Parameters
    ----------
    links : iterable of (source, target)
        Positions from 0.

    Raises
    ------
    InputError
        A link is no pair of positions.
    """
    found = set()
    for link in links:
        try:
            source, target = link
            fits = int(source) == source and int(target) == target and min(source, target) >= 0
        except (TypeError, ValueError):
            fits = False
        if not fits:
            raise InputError(
                explain(
                    "a link is no pair of positions",
                    expected="(source, target), two whole numbers from 0",
                    got=repr(link)[:80],
                )
            )
        found.add((int(source), int(target)))
    return frozenset(found)
