"""How alike two words are spelled: numbers, names and cognates translate as themselves."""

import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rapidfuzz.distance import LCSseq

__all__ = ["alike", "folded"]

_SHORTEST = 4
"""Letters that a word needs to be like another one: among shorter ones likeness is chance."""

_LEAST = 0.6
"""Likeness below this says nothing: two unrelated words share about half of their letters."""


def folded(word: str) -> str:
    """Return a word in lower case and without accents.

    Examples
    --------
    >>> folded("Général")
    'general'
    """
    parts = unicodedata.normalize("NFKD", word.lower())
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


def alike(source: Sequence[str], target: Sequence[str]) -> NDArray[np.float64]:
    r"""Return how alike the words of each pair are spelled.

    .. math::

       x = \max\Bigl(0, \frac{\ell - 0.6}{0.4}\Bigr), \qquad
       \ell = \frac{\text{letters of the longest common subsequence}}
                  {\text{letters of the longer word}}

    of words of four letters and more that begin with one letter, or end with the same three.
    Case and accents do not count.

    Parameters
    ----------
    source, target : sequence of str, of one length
        The words of the pairs.

    Returns
    -------
    x : (pairs,)
        From 0 to 1; 1 for words that are the same, however short.

    Examples
    --------
    >>> alike(["1998", "nation", "the"], ["1998", "nacion", "dhe"]).round(3)
    array([1.   , 0.583, 0.   ])
    """
    plain = {word: folded(word) for word in {*source, *target}}  # pairs repeat their words
    found = np.zeros(len(source))
    for place, (one, other) in enumerate(zip(source, target, strict=True)):
        a, b = plain[one], plain[other]
        if a == b:
            found[place] = 1.0
        elif (a[:1] == b[:1] or a[-3:] == b[-3:]) and min(len(a), len(b)) >= _SHORTEST:
            likeness = LCSseq.normalized_similarity(a, b)
            found[place] = max(0.0, (likeness - _LEAST) / (1 - _LEAST))
    return found
