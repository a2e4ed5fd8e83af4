"""The published search for other weights with the same answer: a lower bound, by gradients.

Five candidates an input start from noise and take 500 steps of Adam (amsgrad, rate 0.01) on
-JSD(own, candidate) + 500 relu(|dp| - epsilon) - the candidates' mean pairwise JSD [1]_. What
counts is the farthest candidate that stays within epsilon. Kept for comparison with published
figures; :mod:`regard.audit.adversary_exact` is exact and cheaper.

References
----------
.. [1] Jain and Wallace, "Attention is not Explanation", NAACL 2019, section 4.2.2 and the
   authors' code. arXiv:1902.10186
"""

from collections.abc import Sequence

import numpy as np

from regard.audit.distances import jensen_shannon
from regard.audit.protocol import Numbers

__all__ = ["search"]

_CANDIDATES = 5
_STEPS = 500
_RATE = 0.01
_PENALTY = 500.0
_TINY = 1e-12

Problem = tuple[Numbers, Numbers, float]
"""Weights (T_enc,), scores (T_enc,) and bias of one logit."""


def search(
    problems: Sequence[Problem],
    generators: Sequence[np.random.Generator],
    *,
    epsilon: float,
    steps: int = _STEPS,
) -> Numbers:
    """Return, for each problem, the largest divergence found within epsilon; 0 for none.

    Parameters
    ----------
    problems : sequence of (weights, scores, bias)
    generators : sequence of numpy.random.Generator
        One each, for the starts.
    epsilon : float
        How far the probability may move.
    steps : int
    """
    longest = max(len(weights) for weights, _, _ in problems)
    n = len(problems)
    own, scores = np.zeros((n, 1, longest)), np.zeros((n, 1, longest))
    real = np.zeros((n, 1, longest), dtype=bool)
    z = np.zeros((n, _CANDIDATES, longest))
    bias = np.array([bias for _, _, bias in problems])[:, None]
    for row, (weights, score, _) in enumerate(problems):
        length = len(weights)
        own[row, 0, :length], scores[row, 0, :length] = weights, score
        real[row, 0, :length] = True
        # The start's log(1/L) is the same for all tokens, so it drops out of the softmax.
        z[row, :, :length] = 3 * generators[row].normal(size=(_CANDIDATES, length))
    p_own = _sigmoid((own * scores).sum(-1) + bias)
    first, second, most = np.zeros_like(z), np.zeros_like(z), np.zeros_like(z)
    for step in range(1, steps + 1):
        q = _softmax(z, real)
        gradient = _gradient(q, own, scores, p_own=p_own, bias=bias, epsilon=epsilon)
        inner = (gradient * q).sum(-1, keepdims=True)
        to_z = q * (gradient - inner)
        first = 0.9 * first + 0.1 * to_z
        second = 0.999 * second + 0.001 * to_z**2
        most = np.maximum(most, second)
        size = np.sqrt(most / (1 - 0.999**step)) + 1e-8
        z -= _RATE * first / (1 - 0.9**step) / size
    q = _softmax(z, real)
    moved = np.abs(_sigmoid((q * scores).sum(-1) + bias) - p_own)
    divergence = np.where(moved <= epsilon, jensen_shannon(own, q), 0.0)
    found: Numbers = divergence.max(-1)
    return found


def _gradient(
    q: Numbers,
    own: Numbers,
    scores: Numbers,
    *,
    p_own: Numbers,
    bias: Numbers,
    epsilon: float,
) -> Numbers:
    """Return the loss's gradient in the candidates (n, candidates, T_enc)."""
    # d JSD(a, q) / d q = log(q / m) / 2 with m the middle of both.
    log_q = np.log(q + _TINY)
    gradient = -(log_q - np.log((own + q) / 2 + _TINY)) / 2
    pairs = _CANDIDATES * (_CANDIDATES - 1) / 2
    for shift in range(1, _CANDIDATES):
        other = np.roll(q, shift, axis=1)
        gradient -= (log_q - np.log((other + q) / 2 + _TINY)) / 2 / pairs
    p = _sigmoid((q * scores).sum(-1) + bias)
    over = np.abs(p - p_own) > epsilon
    slope = np.where(over, _PENALTY * np.sign(p - p_own) * p * (1 - p), 0.0)
    found: Numbers = gradient + slope[..., None] * scores
    return found


def _softmax(z: Numbers, real: Numbers) -> Numbers:
    shifted = np.exp(z - z.max(-1, keepdims=True)) * real
    found: Numbers = shifted / shifted.sum(-1, keepdims=True)
    return found


def _sigmoid(x: Numbers) -> Numbers:
    found: Numbers = 1 / (1 + np.exp(-np.clip(x, -500, 500)))
    return found
