r"""Where a target word looks before it is known: attention from positions alone.

Two kinds. At first every target word chooses for itself,

.. math:: a_t(i) = \mathrm{softmax}_i \bigl(-\lambda \, |t / T_{dec} - i / T_{enc}|\bigr)

which is the diagonal of fast_align [1]_ with a learned strength. Then the choices form a chain,
as in the hidden Markov model of [2]_: the query of a step is where the step before looked,

.. math:: a(i \mid i') = \mathrm{softmax}_i \, b_{i - i'}

with a learned score for every distance: self-attention of the source with relative positions,
one row for each place that the step before may have looked at.

References
----------
.. [1] Dyer, Chahuneau and Smith, "A Simple, Fast, and Effective Reparameterization of IBM
   Model 2", NAACL 2013.
.. [2] Vogel, Ney and Tillmann, "HMM-Based Word Alignment in Statistical Translation",
   COLING 1996.
"""

import torch
from torch import Tensor, nn

from regard.nn.softmax import masked_softmax

__all__ = ["AttentionPrior"]

_FAR = 30
"""Distances above are scored as this one."""

_SLOPE = 0.4
"""By how much a jump's score falls for each word that it is off the next one, at first."""

_FLAT = 12
"""The distance at which it stops to fall."""


class AttentionPrior(nn.Module):
    """Scores of positions and of jumps between them, learned.

    Parameters
    ----------
    strength : float
        The first strength of the diagonal.
    """

    def __init__(self, strength: float = 4.0) -> None:
        super().__init__()
        away = torch.arange(-_FAR, _FAR + 1)
        self.strength = nn.Parameter(torch.tensor(strength))
        self.jump = nn.Parameter(-_SLOPE * (away - 1).abs().clamp_max(_FLAT).float())
        self.first = nn.Parameter(-_SLOPE * away[_FAR:].clamp_max(_FLAT).float())

    def diagonal(self, source: Tensor, target: Tensor) -> Tensor:
        """Return the weights of words that choose for themselves.

        Parameters
        ----------
        source, target : (batch, T_enc) and (batch, T_dec), bool
            True = a word, False = padding.

        Returns
        -------
        weights : (batch, T_dec, T_enc)
            Rows sum to 1.
        """
        off = _relative(target).unsqueeze(-1) - _relative(source).unsqueeze(-2)
        mask = source.unsqueeze(-2).expand(off.shape)
        return masked_softmax(-self.strength * off.abs(), mask)

    def chain(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return the weights of the first step, and of every later one.

        Parameters
        ----------
        source : (batch, T_enc), bool

        Returns
        -------
        first : (batch, T_enc)
        later : (batch, T_enc, T_enc)
            Row i' is what a step looks at whose step before looked at i'. Rows sum to 1.
        """
        place = torch.arange(source.shape[-1])
        jumps = (place - place.unsqueeze(-1)).clamp(-_FAR, _FAR) + _FAR
        scores = self.jump[jumps].expand(len(source), -1, -1)
        first = self.first[place.clamp_max(_FAR)].expand(source.shape)
        mask = source.unsqueeze(-2).expand(scores.shape)
        return masked_softmax(first, source), masked_softmax(scores, mask)


def _relative(words: Tensor) -> Tensor:
    """Return positions from 0 to 1, of the middles of words: (batch, T)."""
    return (torch.arange(words.shape[-1]) + 0.5) / words.sum(-1, keepdim=True)
