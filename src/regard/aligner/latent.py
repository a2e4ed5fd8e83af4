r"""The likelihood of a sentence whose alignment is hidden, and what it says of each link.

With weights a before the target word is known and the lexicon p,

.. math:: p(t_j) = \sum_i a_j(i) \, p(t_j \mid s_i)

sums over all places that the word may have come from, and over all ways through the sentence
where the choices form a chain. The derivative of its logarithm with respect to
:math:`\log p(t_j \mid s_i)` is the posterior: how likely it is, all considered, that word i
made word j. So one backward pass of automatic differentiation is at once the E-step of the
lexicon and the gradient for the attention.

The empty word is the last column of the lexicon's. In a chain it is a place to stay: a step
that no word made looks at nothing, and the next one goes on from where the step before it
looked, as Och and Ney [1]_ have it.

References
----------
.. [1] Och and Ney, "A Systematic Comparison of Various Statistical Alignment Models",
   Computational Linguistics 29(1), 2003, section 2.1.
"""

import torch
from torch import Tensor
from torch.nn import functional

__all__ = ["chain_likelihood", "independent_likelihood"]

_TINY = 1e-30  # keeps the logarithm of a sum of underflowed terms finite


def independent_likelihood(
    lexicon: Tensor, weights: Tensor, target: Tensor, *, empty: float
) -> Tensor:
    """Return the log-likelihood of sentences whose words choose for themselves.

    Parameters
    ----------
    lexicon : (batch, T_dec, T_enc + 1)
        log p(t_j | s_i), the empty word last.
    weights : (batch, T_dec, T_enc)
        Attention weights.
    target : (batch, T_dec), bool
        True = a word, False = padding.
    empty : float
        Share of the words that the empty word makes, above 0 and below 1.

    Returns
    -------
    likelihood : scalar
        Of all sentences together, in nats.
    """
    scaled, scale = _scaled(lexicon, target)
    made = (1 - empty) * (weights * scaled[..., :-1]).sum(-1) + empty * scaled[..., -1]
    return scale + _log(made, target)


def chain_likelihood(
    lexicon: Tensor, first: Tensor, later: Tensor, target: Tensor, *, empty: float
) -> Tensor:
    """Return the log-likelihood of sentences whose choices form a chain.

    Parameters
    ----------
    lexicon : (batch, T_dec, T_enc + 1)
        log p(t_j | s_i), the empty word last.
    first : (batch, T_enc)
        Attention weights of the first step.
    later : (batch, T_enc, T_enc)
        Attention weights of a step, for each place that the step before looked at.
    target : (batch, T_dec), bool
    empty : float

    Returns
    -------
    likelihood : scalar

    Notes
    -----
    Takes time in proportion to T_dec T_enc^2; each step's sum is scaled to 1, so that long
    sentences do not underflow.
    """
    scaled, likelihood = _scaled(lexicon, target)
    made, nothing = (1 - empty) * scaled[..., :-1], empty * scaled[..., -1:]
    # The first place is the one before the sentence, where nothing has looked anywhere yet.
    moves = torch.cat([first.unsqueeze(1), later], dim=1)
    looked = functional.pad(torch.zeros_like(first), (1, 0))
    looked[:, 0] = 1
    shares = []
    for step in range(lexicon.shape[1]):
        moved = torch.bmm(looked.unsqueeze(1), moves).squeeze(1)
        found = looked * nothing[:, step] + functional.pad(moved * made[:, step], (1, 0))
        share = found.sum(-1) + _TINY
        shares.append(share)
        looked = found / share.unsqueeze(-1)
    return likelihood + _log(torch.stack(shares, dim=1), target)


def _scaled(lexicon: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return probabilities over each word's largest, and the logarithms of those, summed."""
    largest = lexicon.detach().amax(-1, keepdim=True)
    return (lexicon - largest).exp(), (largest.squeeze(-1) * target).sum()


def _log(values: Tensor, target: Tensor) -> Tensor:
    return torch.where(target, values, 1.0).log().sum()
