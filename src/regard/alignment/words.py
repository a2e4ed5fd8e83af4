"""From pieces of words to words: merging tokens of an alignment.

Models read pieces (subwords, characters) and marks (end, padding); people ask about words. The
weight of a word is the sum over its source pieces, and the mean over its target pieces: rows
then still sum to 1.
"""

from collections.abc import Sequence

import numpy as np

from regard.alignment.matrix import Alignment
from regard.errors import InputError, explain

__all__ = ["MARKERS", "groups_of", "merge", "without"]

MARKERS = {
    "sentencepiece": "a piece that begins a word starts with \u2581",
    "bpe": "a piece that goes on ends with @@",
    "wordpiece": "a piece that continues starts with ##",
    "gpt2": "a piece that begins a word starts with \u0120",
}
"""Ways in which tokenizers mark pieces."""


def groups_of(tokens: Sequence[str], marker: str) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the words that pieces make, each with the places of its pieces.

    Parameters
    ----------
    tokens : sequence of str
    marker : {"sentencepiece", "bpe", "wordpiece", "gpt2"}

    Raises
    ------
    InputError
        ``marker`` is unknown.

    Examples
    --------
    >>> groups_of(["att@@", "ention", "please"], "bpe")
    (('attention', (0, 1)), ('please', (2,)))
    """
    if marker not in MARKERS:
        raise InputError(
            explain(
                "groups_of(): `marker` is unknown",
                expected=" or ".join(MARKERS),
                got=repr(marker),
            )
        )
    words: list[tuple[str, list[int]]] = []
    goes_on = False
    for place, token in enumerate(tokens):
        text, begins, goes_on = _read(token, marker, goes_on)
        if begins or not words:
            words.append((text, [place]))
        else:
            words[-1] = (words[-1][0] + text, [*words[-1][1], place])
    return tuple((text, tuple(places)) for text, places in words)


def _read(token: str, marker: str, goes_on: bool) -> tuple[str, bool, bool]:
    """Return a piece's own text, whether it begins a word, whether the next one goes on."""
    if marker == "bpe":
        more = token.endswith("@@")
        return token.removesuffix("@@") if more else token, not goes_on, more
    if marker == "wordpiece":
        return token.removeprefix("##"), not token.startswith("##"), False
    sign = "\u2581" if marker == "sentencepiece" else "\u0120"
    return token.removeprefix(sign), token.startswith(sign), False


def merge(
    alignment: Alignment, *, target: str | None = None, source: str | None = None
) -> Alignment:
    """Return the alignment of words, from one of pieces.

    Parameters
    ----------
    alignment : Alignment
    target, source : str, optional
        How each side marks its pieces (see :data:`MARKERS`); None leaves a side as it is.

    Returns
    -------
    merged : Alignment
        Source pieces summed, target pieces averaged; a target word whose pieces all looked at
        nothing has a row of zeros.

    Raises
    ------
    InputError
        A marker is unknown.

    Notes
    -----
    Pieces that looked at nothing are left out of their word's mean: a word of one full and
    one empty row would else have a row that sums to a half.
    """
    weights = alignment.weights
    columns, rows = alignment.source, alignment.target
    if source is not None:
        words = groups_of(columns, source)
        weights = np.stack([weights[:, list(p)].sum(axis=1) for _, p in words], axis=1)
        columns = tuple(text for text, _ in words)
    if target is not None:
        words = groups_of(rows, target)
        looked = weights.sum(axis=1) > 0
        means = []
        for _, places in words:
            full = [place for place in places if looked[place]]
            means.append(weights[full].mean(axis=0) if full else weights[places[0]])
        weights = np.stack(means)
        rows = tuple(text for text, _ in words)
    return Alignment(weights, rows, columns, alignment.made_by)


def without(
    alignment: Alignment,
    *,
    target: Sequence[int] = (),
    source: Sequence[int] = (),
    renormalize: bool,
) -> Alignment:
    """Return the alignment without some tokens: an end, padding, a mark of the language.

    Parameters
    ----------
    alignment : Alignment
    target, source : sequence of int
        Places to leave out, from 0; not all of a side.
    renormalize : bool
        What becomes of the weight on the source tokens that go. True: each row is scaled to sum
        to 1 again, which hides how much was there. False: refused where a row would no longer
        sum to 1.

    Raises
    ------
    InputError
        A place is outside, nothing would remain, or rows lose weight and may not be scaled.
    """
    keep = []
    for name, places, count in (
        ("target", target, len(alignment.target)),
        ("source", source, len(alignment.source)),
    ):
        outside = [place for place in places if not 0 <= place < count]
        if outside or len(set(places)) == count:
            raise InputError(
                explain(
                    f"without(): `{name}` is refused",
                    expected=f"places from 0 to {count - 1}, not all of them",
                    got=str(outside[0] if outside else list(places))[:80],
                )
            )
        keep.append([place for place in range(count) if place not in set(places)])
    weights = alignment.weights[np.ix_(keep[0], keep[1])].copy()
    lost = alignment.weights[keep[0]].sum(axis=1) - weights.sum(axis=1)
    if renormalize:
        sums = weights.sum(axis=1, keepdims=True)
        weights = np.divide(weights, sums, out=np.zeros_like(weights), where=sums > 0)
    elif (lost > 1e-2).any():
        row = int(lost.argmax())
        raise InputError(
            explain(
                "without(): rows would lose weight",
                expected="source tokens that nobody looked at, or renormalize=True",
                got=f"step {keep[0][row]} has {lost[row]:.3g} on them",
                help="renormalize=True scales the rest of each row to 1",
            )
        )
    return Alignment(
        weights,
        [alignment.target[place] for place in keep[0]],
        [alignment.source[place] for place in keep[1]],
        alignment.made_by,
    )
