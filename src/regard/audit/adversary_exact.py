r"""The weights farthest from the model's own that give the same answer: exactly, no search.

Where the answer is read from one number, :math:`\sigma(s \cdot q + b)`, the weights within
:math:`\epsilon` of it form a polytope: the simplex cut by two parallel planes. The
Jensen-Shannon divergence from :math:`\alpha` is convex, so its maximum sits on a vertex, and
each vertex has one or two weights that are not zero:

* one token t alone, if its :math:`s_t` lies between the planes;
* two tokens on either side of a plane, mixed so that the plane is met.

All are tried: O(T_enc^2), against hundreds of gradient steps for a lower bound.

Such weights exist for nearly every input of nearly every model, also of one whose attention is
faithful by construction: one equation leaves T_enc - 1 directions. It is a property of the
read-out, never counted against a model.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.audit.adversary_search import search
from regard.audit.distances import jensen_shannon
from regard.audit.measure import Columns, Measure, means_of
from regard.audit.protocol import Numbers, ReadsOut
from regard.audit.sample import Sample
from regard.audit.verdict import Row, Table

__all__ = ["EPSILON", "MEASURE", "band", "farthest", "one_logit", "run"]

EPSILON = 0.01
"""How far the probability may move; the published plots use 0.05, their text 0.01."""
_FAR = 0.4  # a divergence that makes two maps look different


def farthest(
    weights: Numbers, scores: Numbers, low: float, high: float
) -> tuple[Numbers, float]:
    """Return the admissible weights farthest from the given ones, and how far.

    Parameters
    ----------
    weights : (T_enc,)
        A distribution.
    scores : (T_enc,)
        What each token adds to the logit at weight 1, the bias left out.
    low, high : float
        Between which the weighted score has to stay; that of `weights` does.

    Returns
    -------
    weights : (T_enc,)
    divergence : float
        Jensen-Shannon, 0 to 0.693.
    """
    best, found = 0.0, weights
    half = _plogp(weights / 2)
    rest = half.sum()
    own = _plogp(weights).sum()
    inside = np.flatnonzero((scores >= low) & (scores <= high))
    if inside.size:
        # Of one token alone, q log q is 0.
        middle = rest - half[inside] + _plogp((weights[inside] + 1) / 2)
        divergence = own / 2 - middle
        top = int(divergence.argmax())
        if divergence[top] > best:
            best, found = float(divergence[top]), np.zeros_like(weights)
            found[inside[top]] = 1.0
    for plane in {low, high}:
        if not np.isfinite(plane):
            continue
        above, below = np.flatnonzero(scores > plane), np.flatnonzero(scores < plane)
        if not (above.size and below.size):
            continue
        s_i, s_j = scores[above][:, None], scores[below][None]
        q_i = (plane - s_j) / (s_i - s_j)
        q_j = 1 - q_i
        middle = (
            rest
            - half[above][:, None]
            - half[below][None]
            + _plogp((weights[above][:, None] + q_i) / 2)
            + _plogp((weights[below][None] + q_j) / 2)
        )
        divergence = (own + _plogp(q_i) + _plogp(q_j)) / 2 - middle
        row, column = np.unravel_index(int(divergence.argmax()), divergence.shape)
        if divergence[row, column] > best:
            best, found = float(divergence[row, column]), np.zeros_like(weights)
            found[above[row]], found[below[column]] = q_i[row, column], q_j[row, column]
    return found, best


def band(p: float, bias: float, epsilon: float = EPSILON) -> tuple[float, float]:
    """Return between which numbers s . q lies if the probability stays within epsilon of p."""
    low, high = p - epsilon, p + epsilon
    return (
        -np.inf if low <= 0 else float(np.log(low / (1 - low)) - bias),
        np.inf if high >= 1 else float(np.log(high / (1 - high)) - bias),
    )


def one_logit(scores: Numbers, bias: Numbers) -> tuple[Numbers, float]:
    """Return scores (T_enc,) and bias of the last class's logit, from one or two outputs."""
    if scores.shape[1] == 1:
        return scores[:, 0], float(bias[0])
    return scores[:, 1] - scores[:, 0], float(bias[1] - bias[0])


def run(sample: Sample, chunk: Sequence[int]) -> dict[str, list[Any]]:
    """Return how far the farthest weights with the same answer are, and those of the search.

    Returns
    -------
    columns : dict
        ``exact`` and ``search``: divergence from the model's own weights; ``exists``: whether
        the exact one is above 0.4.
    """
    exact = []
    problems = []
    for number in chunk:
        scores, bias = one_logit(*sample.scores(number))
        weights = sample.weights[number]
        low, high = band(float(sample.probabilities[number, 1]), bias)
        other, _ = farthest(weights, scores, low, high)
        exact.append(float(jensen_shannon(weights, other)))
        problems.append((weights, scores, bias))
    generators = [sample.random(number, "search") for number in chunk]
    return {
        "exact": exact,
        "search": search(problems, generators, epsilon=EPSILON).tolist(),
        "exists": [float(divergence > _FAR) for divergence in exact],
    }


def table(columns: Columns, seed: int) -> Table:
    """Return the mean divergences."""
    mean = means_of(columns, seed)
    rows = [
        Row("exact: farthest weights (JSD)", mean(columns["exact"])),
        Row("published search, 500 steps (JSD)", mean(columns["search"])),
        Row(f"inputs with one farther than {_FAR:g}", mean(columns["exists"])),
    ]
    return Table(
        "adversary",
        f"Other weights with the same answer within {EPSILON:g}",
        "how freely weights could be chosen without the answer moving",
        "anything about the weights the model chose: expected by construction where the answer "
        "is one number; not counted",
        tuple(rows),
    )


def missing(sample: Sample) -> str | None:
    """Return why there is no exact adversary, or None."""
    if not isinstance(sample.case, ReadsOut):
        return "the case has no read_out"
    outputs = sample.scores(0)[0].shape[1]
    return None if outputs <= 2 else f"the answer has {outputs} classes, not one logit"


def _plogp(p: Any) -> Any:
    return p * np.log(np.where(p > 0, p, 1.0))


MEASURE = Measure("adversary", run, table, missing)
