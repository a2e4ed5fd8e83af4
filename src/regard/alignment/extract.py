"""From weights to links: one rule a function.

Weights are a distribution over the source at each target word, never a decision. Each rule
decides in another way, and their links differ: say which one was used. ``argmax`` is
:meth:`regard.alignment.Alignment.links`.

Rules of two directions take the weights of both as ``(T_dec, T_enc)``: ``forward[t, s]`` says
how much target word t looked at source word s, ``backward[t, s]`` how much source word s looked
at target word t. A model that reads the other way round gives ``(source, target)``: transpose.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.alignment.links import Links
from regard.alignment.numbers import numbers_of
from regard.errors import InputError, ShapeError, explain

__all__ = ["agreeing", "entropic", "itermax", "mutual", "threshold"]

Weights = NDArray[np.float64]


def threshold(weights: Any, least: float) -> Links:
    """Return every link whose weight is at least ``least``.

    Parameters
    ----------
    weights : (T_dec, T_enc)
        Finite, not negative.
    least : float
        Above 0.

    Raises
    ------
    InputError, ShapeError, BackendError
        ``least`` is not above 0, or ``weights`` is no matrix of weights.

    Examples
    --------
    >>> sorted(threshold([[0.9, 0.1], [0.4, 0.6]], 0.3))
    [(0, 0), (0, 1), (1, 1)]
    """
    _check_number("threshold", "least", least, 0 < least < np.inf, "a number above 0")
    return _links(_matrix("threshold", "weights", weights) >= least)


def mutual(forward: Any, backward: Any) -> Links:
    """Return the links that are the largest of both their row and their column.

    A word's largest weight in one direction and its partner's in the other: the intersection
    of two argmax alignments, precise and incomplete.

    Parameters
    ----------
    forward, backward : (T_dec, T_enc)
        As the module says. A row (of ``forward``) or column (of ``backward``) of zeros links
        to nothing.

    Raises
    ------
    ShapeError, InputError, BackendError
        They differ in shape, or are no matrices of weights.
    """
    forward, backward = _pair("mutual", forward, backward)
    return _links(_largest(forward, axis=1) & _largest(backward, axis=0))


def agreeing(forward: Any, backward: Any, least: float = 0.3) -> Links:
    r"""Return the links whose two weights have a geometric mean of at least ``least``.

    .. math:: \sqrt{f_{t,s} \, b_{t,s}} \ge \theta

    Several links a word are possible on both sides, and a word may have none.

    Parameters
    ----------
    forward, backward : (T_dec, T_enc)
    least : float
        Above 0.

    Raises
    ------
    ShapeError, InputError, BackendError
        They differ in shape or are no matrices of weights, or ``least`` is not above 0.
    """
    _check_number("agreeing", "least", least, 0 < least < np.inf, "a number above 0")
    forward, backward = _pair("agreeing", forward, backward)
    return _links(np.sqrt(forward * backward) >= least)


def itermax(forward: Any, backward: Any, *, rounds: int = 2, discount: float = 0.9) -> Links:
    """Return mutual argmax links, then those among what is left, round by round [1]_.

    Parameters
    ----------
    forward, backward : (T_dec, T_enc)
        Their mean is what is compared.
    rounds : int
        From 1; 1 is the mutual argmax of the mean.
    discount : float
        0 to 1: in later rounds, weights between a free word and one that has a link already
        count this much; weights between two linked words count nothing.

    Raises
    ------
    ShapeError, InputError, BackendError
        They differ in shape or are no matrices of weights, or an option is refused.

    References
    ----------
    .. [1] Jalili Sabet, Dufter, Yvon and Schuetze, "SimAlign: High Quality Word Alignments
       Without Parallel Training Data", Findings of EMNLP 2020, algorithm 1. arXiv:2004.08728
    """
    _check_number("itermax", "rounds", rounds, rounds >= 1, "at least 1")
    _check_number("itermax", "discount", discount, 0 <= discount <= 1, "from 0 to 1")
    forward, backward = _pair("itermax", forward, backward)
    mean = (forward + backward) / 2
    found = np.zeros(mean.shape, dtype=bool)
    for _ in range(rounds):
        row = found.sum(axis=1, keepdims=True) > 0
        column = found.sum(axis=0, keepdims=True) > 0
        left = np.where(row & column, 0.0, np.where(row | column, discount, 1.0)) * mean
        new = _largest(left, axis=1) & _largest(left, axis=0) & ~found
        if not new.any():
            break
        found |= new
    return _links(found)


def entropic(
    forward: Any,
    backward: Any,
    least: float = 0.1,
    *,
    temperature: float = 0.1,
    steps: int = 200,
) -> Links:
    r"""Return the links of an optimal plan between the two sentences, smoothed by entropy.

    Every word has the same share of a mass of 1 to give and to take; the plan
    :math:`P = \mathrm{diag}(u) \, e^{C / \varepsilon} \, \mathrm{diag}(v)` with :math:`C` the
    mean of both weights keeps both [1]_. A link is kept where the plan gives it at least
    ``least`` of the share of its rarer side.

    Parameters
    ----------
    forward, backward : (T_dec, T_enc)
    least : float
        Above 0, at most 1.
    temperature : float
        Epsilon, above 0: small values decide sharply.
    steps : int
        Of Sinkhorn's iteration, at least 1; it stops earlier where nothing moves any more.

    Raises
    ------
    ShapeError, InputError, BackendError
        They differ in shape or are no matrices of weights, or an option is refused.

    References
    ----------
    .. [1] Cuturi, "Sinkhorn Distances: Lightspeed Computation of Optimal Transport", NeurIPS
       2013, section 4. arXiv:1306.0895
    """
    _check_number("entropic", "least", least, 0 < least <= 1, "above 0, at most 1")
    _check_number("entropic", "temperature", temperature, temperature > 0, "above 0")
    _check_number("entropic", "steps", steps, steps >= 1, "at least 1")
    forward, backward = _pair("entropic", forward, backward)
    t_dec, t_enc = forward.shape
    scores = (forward + backward) / (2 * temperature)
    down, across = np.zeros(t_dec), np.zeros(t_enc)
    # On logarithms: the exponentials of small temperatures leave the range of numbers.
    for _ in range(steps):
        before = down
        down = -np.log(t_dec) - np.logaddexp.reduce(scores + across, axis=1)
        across = -np.log(t_enc) - np.logaddexp.reduce(scores + down[:, None], axis=0)
        if np.abs(down - before).max() < 1e-9:
            break
    plan = np.exp(scores + down[:, None] + across)
    # The plan hands every word's share to somebody; words that nobody looked at stay alone.
    return _links((plan * max(t_dec, t_enc) >= least) & (scores > 0))


def _largest(weights: Weights, axis: int) -> NDArray[np.bool_]:
    """Mark the first largest weight along an axis; nothing where all are zero."""
    place = np.expand_dims(weights.argmax(axis=axis), axis)
    found = np.zeros(weights.shape, dtype=bool)
    np.put_along_axis(found, place, True, axis=axis)
    return found & (weights > 0)


def _links(found: NDArray[np.bool_]) -> Links:
    return frozenset((int(s), int(t)) for t, s in np.argwhere(found))


def _pair(name: str, forward: Any, backward: Any) -> tuple[Weights, Weights]:
    one, other = _matrix(name, "forward", forward), _matrix(name, "backward", backward)
    if one.shape != other.shape:
        turned = one.shape == other.shape[::-1]
        raise ShapeError(
            explain(
                f"{name}(): `backward` does not fit `forward`",
                expected=f"backward (T_dec={one.shape[0]}, T_enc={one.shape[1]})",
                got=f"backward {other.shape}",
                help="the transpose of `backward` would fit" if turned else None,
            )
        )
    return one, other


def _matrix(name: str, argument: str, weights: Any) -> Weights:
    matrix = numbers_of(weights, f"{name}()", f"{argument} (T_dec, T_enc)", argument=argument)
    if matrix.ndim != 2 or not matrix.size:
        raise ShapeError(
            explain(
                f"{name}(): `{argument}` is no matrix",
                expected=f"{argument} (T_dec, T_enc), both at least 1",
                got=f"{argument} {matrix.shape}",
            )
        )
    if not (np.isfinite(matrix).all() and (matrix >= 0).all()):
        raise InputError(
            explain(
                f"{name}(): `{argument}` has a weight that is negative or not finite",
                expected="finite weights from 0",
                got=str(matrix[~np.isfinite(matrix) | (matrix < 0)][0]),
            )
        )
    return matrix


def _check_number(name: str, argument: str, value: float, fits: bool, expected: str) -> None:
    if not fits:
        raise InputError(
            explain(f"{name}(): `{argument}` is refused", expected=expected, got=repr(value))
        )
