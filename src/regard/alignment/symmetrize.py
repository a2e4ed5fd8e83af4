"""Two directions of links, made into one.

An aligner that links every target word to at most one source word cannot find that two source
words are said in one; run the other way round it can, and cannot find the reverse. Both
directions together can do both. All methods start from the links that both directions have,
where precision is highest, and differ in which of the rest they take.
"""

import bisect
from collections.abc import Iterator
from typing import Literal, get_args

from regard.alignment.links import Link, Links
from regard.errors import InputError, explain

__all__ = ["METHODS", "Method", "symmetrize"]

Method = Literal[
    "intersection",
    "union",
    "grow-diag",
    "grow-diag-final",
    "grow-diag-final-and",
    "grow-diag-free",
    "grow-diag-free-final",
]
"""How two directions become one; :func:`symmetrize` says what each does."""

METHODS: tuple[Method, ...] = get_args(Method)
"""All methods."""

# Up, left, down, right, then the corners: another order adds others here and there.
_STRAIGHT_THEN_DIAGONAL = (
    (-1, 0),
    (0, -1),
    (1, 0),
    (0, 1),
    (-1, -1),
    (-1, 1),
    (1, -1),
    (1, 1),
)


def symmetrize(forward: Links, backward: Links, method: Method = "grow-diag-final") -> Links:
    """Combine the links of two directions.

    Parameters
    ----------
    forward, backward : set of (source, target)
        Found by aligning target to source and source to target. Both are written source first:
        a file that an aligner wrote in the other direction has to be turned first.
    method : str
        ``intersection``: links of both. ``union``: links of either. ``grow-diag`` [1]_ [2]_:
        starts with the intersection and adds, again and again, links of the union that touch
        a link it has (corners count) and whose source *or* target word has none. ``-final``
        then adds links of one direction whose source *or* target has none, ``-final-and``
        those whose source *and* target have none. ``grow-diag-free`` adds a touching link only
        if source *and* target have none; the outputs published with [3]_ under the name
        grow-diagonal are this one's. Its ``-final`` adds free links of either direction,
        whether they touch or not.

    Returns
    -------
    links : set of (source, target)
        Between the intersection and the union.

    Raises
    ------
    InputError
        ``method`` is unknown.

    References
    ----------
    .. [1] Koehn, Och and Marcu, "Statistical Phrase-Based Translation", NAACL 2003,
       section 4.5.
    .. [2] Koehn et al., "Edinburgh System Description for the 2005 IWSLT Speech Translation
       Evaluation", IWSLT 2005, figure 1.
    .. [3] Zenkel, Wuebker and DeNero, "Adding Interpretable Attention to Neural Translation
       Models Improves Word Alignment", 2019; their outputs were compared. arXiv:1901.11359

    Examples
    --------
    >>> forward, backward = frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 2)})
    >>> sorted(symmetrize(forward, backward, "grow-diag"))
    [(0, 0), (1, 1), (1, 2)]
    """
    if method not in METHODS:
        raise InputError(
            explain(
                "symmetrize(): `method` is unknown",
                expected=" or ".join(METHODS),
                got=repr(method),
            )
        )
    if method == "union":
        return forward | backward
    if method == "intersection":
        return forward & backward
    free = "free" in method
    grown = _Grown(forward & backward)
    _grow(grown, forward | backward, free)
    if "final" in method:
        both = free or method.endswith("and")
        for direction in (forward, backward):
            for link in sorted(direction):
                if grown.wants(link, both):
                    grown.add(link)
    return frozenset(grown.links)


class _Grown:
    """A set of links that knows which words have one."""

    def __init__(self, links: Links) -> None:
        self.links: list[Link] = []
        self._sources: set[int] = set()
        self._targets: set[int] = set()
        for link in links:
            self.add(link)

    def add(self, link: Link) -> None:
        bisect.insort(self.links, link)
        self._sources.add(link[0])
        self._targets.add(link[1])

    def wants(self, link: Link, both: bool) -> bool:
        free = (link[0] not in self._sources, link[1] not in self._targets)
        return all(free) if both else any(free)


def _grow(grown: _Grown, union: Links, both: bool) -> None:
    added = True
    while added:
        added = False
        # Row by row, as the published procedure goes: what is added further on is still
        # reached in this turn, what is added before is reached in the next one.
        link: Link = (-1, -1)
        while (place := bisect.bisect_right(grown.links, link)) < len(grown.links):
            link = grown.links[place]
            for near in _around(link):
                if near in union and grown.wants(near, both):
                    grown.add(near)
                    added = True


def _around(link: Link) -> Iterator[Link]:
    for down, right in _STRAIGHT_THEN_DIAGONAL:
        yield link[0] + down, link[1] + right
