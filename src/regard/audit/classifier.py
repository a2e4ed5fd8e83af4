r"""regard's own text classifiers with attention: what published audits were made on.

.. math::
    h = \mathrm{encoder}(x), \quad \alpha = \mathrm{softmax}(\mathrm{score}(h)), \quad
    p = \sigma(w \cdot \sum_t \alpha_t h_t + b)

Encoders: ``bilstm`` and ``bigru`` know the whole text at each token; ``average`` (a tanh
projection) and ``embedding`` know the token alone. Scores: ``tanh``,
:math:`v \cdot \tanh(W h + b)` with W to half the size, and ``dot``,
:math:`w \cdot h / \sqrt{d_h}` [1]_. With two classes there is one logit, with more a softmax.

References
----------
.. [1] Jain and Wallace, "Attention is not Explanation", NAACL 2019, section 3 and the authors'
   code. arXiv:1902.10186
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.errors import InputError, explain
from regard.kernels.softmax import masked_softmax

__all__ = [
    "ENCODERS",
    "AttentionClassifier",
    "Classified",
    "ClassifierConfig",
    "distribution",
]

ENCODERS = ("bilstm", "bigru", "average", "embedding")
_SCORES = ("tanh", "dot")
PAD, MASK, BEGIN, END = range(4)
FIRST = 4


@dataclass(frozen=True)
class ClassifierConfig:
    """Sizes and kinds.

    Parameters
    ----------
    symbols : int
        Size of the vocabulary, the four reserved ids included.
    classes : int
        From 2.
    encoder : {"bilstm", "bigru", "average", "embedding"}
    score : {"tanh", "dot"}
    d_in, d_hidden : int
        Sizes of an embedding and of the states of one direction; ``average`` has
        ``d_hidden`` features, ``embedding`` those of its embeddings.
    scale : float
        Standard deviation of the embeddings at the start.
    sentinels : bool
        Put a begin and an end around the text, which are encoded and never attended.
    sparse : bool
        Whether gradients of embeddings are sparse, for vocabularies far larger than a batch.
    """

    symbols: int
    classes: int = 2
    encoder: Literal["bilstm", "bigru", "average", "embedding"] = "bilstm"
    score: Literal["tanh", "dot"] = "tanh"
    d_in: int = 64
    d_hidden: int = 64
    scale: float = 0.1
    sentinels: bool = False
    sparse: bool = False

    def __post_init__(self) -> None:
        for name, fits, expected in (
            ("encoder", self.encoder in ENCODERS, " or ".join(ENCODERS)),
            ("score", self.score in _SCORES, " or ".join(_SCORES)),
            ("classes", self.classes >= 2, "at least 2"),
            ("symbols", self.symbols >= FIRST, f"at least {FIRST}"),
        ):
            if not fits:
                raise InputError(
                    explain(
                        f"ClassifierConfig(): `{name}` is refused",
                        expected=expected,
                        got=repr(getattr(self, name)),
                    )
                )

    @property
    def d_h(self) -> int:
        """Size of a state."""
        if self.encoder == "embedding":
            return self.d_in
        return self.d_hidden * (1 if self.encoder == "average" else 2)


class Classified(NamedTuple):
    """What a classifier returns.

    Attributes
    ----------
    outputs : (batch, outputs)
        Logits: one for two classes, else one a class.
    weights : (batch, T)
        Zero on padding and sentinels.
    states : (batch, T, d_h)
    embedded : (batch, T, d_in)
    """

    outputs: Tensor
    weights: Tensor
    states: Tensor
    embedded: Tensor


class AttentionClassifier(nn.Module):
    """Encoder, attention without a query, and a linear read-out.

    Parameters
    ----------
    config : ClassifierConfig
    """

    def __init__(self, config: ClassifierConfig) -> None:
        super().__init__()
        self.config = config
        self.embedding = nn.Embedding(
            config.symbols, config.d_in, padding_idx=PAD, sparse=config.sparse
        )
        with torch.no_grad():
            self.embedding.weight.mul_(config.scale)
            self.embedding.weight[MASK] = 0.0  # never trained: it says nothing
        self.encoder = _encoder(config)
        d_h = config.d_h
        self.hidden = nn.Linear(d_h, d_h // 2) if config.score == "tanh" else None
        self.scored = nn.Linear(d_h // 2 if self.hidden is not None else d_h, 1, bias=False)
        self.readout = nn.Linear(d_h, 1 if config.classes == 2 else config.classes)

    @property
    def attention_parameters(self) -> list[nn.Parameter]:
        """Those of the score: published training gives them no weight decay."""
        parts = [self.scored] if self.hidden is None else [self.hidden, self.scored]
        return [parameter for part in parts for parameter in part.parameters()]

    def forward(
        self, ids: Tensor, lengths: Tensor, weights: Tensor | None = None, *, cut: bool = False
    ) -> Classified:
        """Classify a batch.

        Parameters
        ----------
        ids : (batch, T)
            Padded with 0; sentinels included where the model has them.
        lengths : (batch,)
            Sentinels included.
        weights : (batch, T), optional
            Used instead of the model's own.
        cut : bool
            Let no gradient pass through the weights.

        Returns
        -------
        classified : Classified
        """
        embedded = self.embedding(ids)
        states = self._encode(embedded, lengths)
        if weights is None:
            weights = masked_softmax(self._score(states), self.attendable(ids))
        if cut:
            weights = weights.detach()
        context = (weights[..., None] * states).sum(1)
        return Classified(self.readout(context), weights, states, embedded)

    def attendable(self, ids: Tensor) -> Tensor:
        """Return which places may be attended (batch, T)."""
        return (ids != PAD) & (ids != BEGIN) & (ids != END)

    def _encode(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        if self.encoder is None:
            return embedded
        if not isinstance(self.encoder, nn.LSTM | nn.GRU):
            projected: Tensor = torch.tanh(self.encoder(embedded))
            return projected
        if bool((lengths == embedded.shape[1]).all()):
            states: Tensor = self.encoder(embedded)[0]
            return states
        packed = pack_padded_sequence(
            embedded, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, _ = pad_packed_sequence(
            self.encoder(packed)[0], batch_first=True, total_length=embedded.shape[1]
        )
        return states

    def _score(self, states: Tensor) -> Tensor:
        if self.hidden is None:
            found: Tensor = self.scored(states)[..., 0] / states.shape[-1] ** 0.5
        else:
            found = self.scored(torch.tanh(self.hidden(states)))[..., 0]
        return found


def distribution(outputs: Tensor) -> Tensor:
    """Return the probabilities (batch, classes) of outputs, one logit for two classes."""
    if outputs.shape[-1] > 1:
        return outputs.softmax(-1)
    last = outputs.sigmoid()
    return torch.cat([1 - last, last], dim=-1)


def _encoder(config: ClassifierConfig) -> nn.Module | None:
    if config.encoder == "embedding":
        return None
    if config.encoder == "average":
        return nn.Linear(config.d_in, config.d_hidden)
    kind = nn.LSTM if config.encoder == "bilstm" else nn.GRU
    return kind(config.d_in, config.d_hidden, batch_first=True, bidirectional=True)
