r"""Scheduled sampling: in training, now and then a model reads its own symbol.

With teacher forcing a model only ever reads reference symbols, and in use only its own. Bengio
et al. [1]_ bridge the two: at every step a coin decides which it reads,

.. math::
   \hat y_t \sim p(y_t \mid \hat y_{<t}, x), \qquad
   \text{read } \hat y_t \text{ with probability } p, \text{ else } y_t

and p grows during training (:math:`p = 1 - \epsilon_i` in the paper's terms). No gradient flows
through the choice of a symbol.

References
----------
.. [1] Bengio, Vinyals, Jaitly and Shazeer, "Scheduled Sampling for Sequence Prediction with
   Recurrent Neural Networks", NIPS 2015, section 2.4. arXiv:1506.03099
"""

from typing import Any, Protocol

import torch
from torch import Tensor

from regard.errors import InputError, explain
from regard.seq2seq.vocab import BOS, PAD, UNK

__all__ = ["Steps", "require_share", "run_sampled"]

_NEVER = (PAD, BOS, UNK)


class Steps(Protocol):
    """Anything that takes one step: previous, memory, state -> scores, state, weights."""

    def __call__(
        self, previous: Tensor, memory: Any, state: Any, /
    ) -> tuple[Tensor, Any, Tensor | None]:
        """Take it."""
        ...


def require_share(sampling: float) -> None:
    """Refuse what is no probability.

    Raises
    ------
    InputError
        It is outside 0 to 1.
    """
    if not 0 <= sampling <= 1:
        raise InputError(
            explain(
                "Seq2Seq(): `sampling` is no probability",
                expected="from 0 to 1",
                got=repr(sampling),
            )
        )


def run_sampled(
    step: Steps, inputs: Tensor, memory: Any, state: Any, sampling: float
) -> tuple[Tensor, Tensor | None]:
    """Run a known target of which the model reads a part only.

    Parameters
    ----------
    step : callable
        Takes one step.
    inputs : (batch, T_dec)
        ``BOS`` and the target. The first is always read.
    memory, state
        For `step`.
    sampling : float
        Probability, of each symbol by itself, that the model's own is read in its place.

    Returns
    -------
    symbol_scores : (batch, T_dec, target_symbols)
    weights : (batch, T_dec, T_enc) or None

    Notes
    -----
    Random numbers are PyTorch's own, so the result depends on its seed. Padding, begin and
    unknown are never sampled, as no search answers them. Each step waits for the one before: no
    loop in one node, no batched recurrence.
    """
    own = torch.rand(inputs.shape, device=inputs.device) < sampling
    never = torch.tensor(_NEVER, device=inputs.device)
    previous = inputs[:, 0]
    scored: list[Tensor] = []
    looked: list[Tensor] = []
    for t in range(inputs.shape[1]):
        if t:
            chances = scored[-1].detach().float().index_fill(-1, never, -torch.inf)
            drawn = torch.multinomial(torch.softmax(chances, -1), 1).squeeze(1)
            previous = torch.where(own[:, t], drawn, inputs[:, t])
        scores, state, weights = step(previous, memory, state)
        scored.append(scores)
        if weights is not None:
            looked.append(weights)
    return torch.stack(scored, 1), torch.stack(looked, 1) if looked else None
