"""One direction of an aligner: attention and a lexicon, and what they believe of a batch."""

from collections.abc import Mapping

import torch
from torch import Tensor

from regard.aligner.bitext import Batch
from regard.aligner.latent import chain_likelihood, independent_likelihood
from regard.aligner.lexicon import Lexicon
from regard.aligner.prior import AttentionPrior

__all__ = ["Direction"]

_PACE = 0.03
"""Adam's learning rate for positions and jumps: some hundred parameters, many words each."""


class Direction:
    """How target words choose among source words, and what they are made into.

    Parameters
    ----------
    lexicon : Lexicon
        Of the corpus whose batches it will see.
    empty : float
        Share of the target words that no source word makes.
    """

    def __init__(self, lexicon: Lexicon, *, empty: float) -> None:
        self.lexicon = lexicon
        self.prior = AttentionPrior()
        self.empty = empty
        self._adam = torch.optim.Adam(self.prior.parameters(), lr=_PACE)

    def posteriors(self, batch: Batch, *, chain: bool, learn: bool) -> tuple[Tensor, float]:
        """Return how likely every link is, now that the target is known.

        Parameters
        ----------
        batch : Batch
            Of the direction: what is chosen among is its source.
        chain : bool
            Whether a step's choice depends on the one before.
        learn : bool
            Whether the attention takes a step up the likelihood's gradient.

        Returns
        -------
        posteriors : (batch, T_dec, T_enc + 1)
            Rows of words sum to 1; the last column is the empty word's. Padding is 0.
        likelihood : float
            In nats, of the batch.
        """
        source, target = batch.source >= 0, batch.target >= 0
        lexicon = self._lexicon(batch).requires_grad_()
        if chain:
            weights = self.prior.chain(source)
            likelihood = chain_likelihood(lexicon, *weights, target, empty=self.empty)
        else:
            even = self.prior.diagonal(source, target)
            likelihood = independent_likelihood(lexicon, even, target, empty=self.empty)
        parameters = list(self.prior.parameters())
        found = torch.autograd.grad(likelihood, [lexicon, *parameters], allow_unused=True)
        if learn:
            for parameter, gradient in zip(parameters, found[1:], strict=True):
                parameter.grad = None if gradient is None else -gradient / target.sum()
            self._adam.step()
        return found[0], likelihood.item()

    def state(self) -> dict[str, Tensor]:
        """Return what the attention has learned and how, under names."""
        found = {f"prior.{name}": value for name, value in self.prior.state_dict().items()}
        for number, entries in self._adam.state_dict()["state"].items():
            found |= {f"adam.{number}.{name}": value for name, value in entries.items()}
        return found

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Take what :meth:`state` returned."""
        prefix = "prior."
        self.prior.load_state_dict(
            {n.removeprefix(prefix): v for n, v in state.items() if n.startswith(prefix)}
        )
        entries: dict[int, dict[str, Tensor]] = {}
        for name, value in state.items():
            kind, _, rest = name.partition(".")
            if kind == "adam":
                number, _, entry = rest.partition(".")
                entries.setdefault(int(number), {})[entry] = value
        groups = self._adam.state_dict()["param_groups"]
        self._adam.load_state_dict({"state": entries, "param_groups": groups})

    def _lexicon(self, batch: Batch) -> Tensor:
        """Return log p(t_j | s_i), the empty word last: (batch, T_dec, T_enc + 1)."""
        pairs = self.lexicon.table[batch.cells.long()]
        empty = self.lexicon.empty_table[batch.target.clamp_min(0)]
        return torch.cat([pairs, empty.unsqueeze(-1)], dim=-1).log()
