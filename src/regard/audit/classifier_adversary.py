r"""What an adversary of a whole classifier is trained for: the same answers, other weights.

For each training input, with :math:`p, \alpha` its own answer and weights and
:math:`p', \alpha'` those of the model that it imitates [1]_,

.. math:: TVD(p, p') - \lambda\, KL(\alpha, \alpha')

The total variation distance is half the sum over classes, as the paper writes it; its code
halves the difference of one probability once more, so that its lambda counts double there.

References
----------
.. [1] Wiegreffe and Pinter, "Attention is not not Explanation", EMNLP 2019, section 4.
   arXiv:1908.04626
"""

from collections.abc import Sequence

from torch import Tensor

from regard.audit.classifier import Classified, distribution
from regard.audit.classifier_training import Objective, Weights

__all__ = ["imitating"]

_TINY = 1e-10  # inside logarithms, as in published code: a weight may be 0 in single precision


def imitating(
    answers: Tensor, weights: Weights, *, strength: float, factors: Tensor | None = None
) -> Objective:
    """Return what an adversary makes small.

    Parameters
    ----------
    answers : (n, classes)
        Probabilities of the model that it imitates, for the training set.
    weights : callable
        That model's weights (batch, T), zero on padding, for rows of the training set.
    strength : float
        Lambda: how far the weights are pushed apart.
    factors : (n,), optional
        How much each input counts.
    """

    def loss(found: Classified, rows: Sequence[int]) -> Tensor:
        apart = (distribution(found.outputs) - answers[list(rows)]).abs().sum(-1) / 2
        own, other = (each.clamp(min=_TINY).log() for each in (found.weights, weights(rows)))
        each: Tensor = apart - strength * (found.weights * (own - other)).sum(-1)
        return (each if factors is None else each * factors[list(rows)]).mean()

    return loss
