"""A trained regard model that turns sequences into sequences, as a case: an input is a step.

The target is taken as written (teacher forcing): what is asked is the next symbol, given the
source and what stands before it, and the weights are those of that step.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.audit.inputs import Input
from regard.audit.protocol import Numbers
from regard.errors import InputError, explain
from regard.seq2seq.batch import collate_sources
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import BOS, FIRST, PAD, UNK, Vocab

__all__ = ["MASK_TOKEN", "StepCase", "from_regard"]

MASK_TOKEN = "\ufffd"
"""No vocabulary has it: an unknown symbol, whose embedding is zero, says nothing."""


def from_regard(model: str | Transducer | Seq2Seq, **options: Any) -> "StepCase":
    """Return the case of a model directory, a loaded transducer, or a model.

    Parameters
    ----------
    model : str, path, Transducer or Seq2Seq
    **options
        As :class:`StepCase` takes them; a bare model needs ``source`` and ``target``.

    Raises
    ------
    InputError
        The directory has no model, the model is an ensemble, or it does not attend.
    """
    if isinstance(model, Seq2Seq):
        return StepCase(model, **options)
    loaded = model if isinstance(model, Transducer) else Transducer.load(model)
    if not isinstance(loaded.model, Seq2Seq):
        raise InputError(
            explain(
                "from_regard(): an ensemble has weights of several models",
                expected="one of its members",
                got=type(loaded.model).__name__,
            )
        )
    name = f"regard model {model}" if not isinstance(model, Transducer) else "regard model"
    sides = {"source": loaded.description.source, "target": loaded.description.target}
    return StepCase(loaded.model, **{"name": name, **sides, **options})


class StepCase:
    """One output step of a model with attention.

    Parameters
    ----------
    model : Seq2Seq
        Whose decoder calls a module ``attention``: Bahdanau's and Luong's.
    source, target : Vocab
    name : str

    Raises
    ------
    InputError
        The model has no such attention.
    """

    mask_token = MASK_TOKEN

    def __init__(
        self, model: Seq2Seq, source: Vocab, target: Vocab, *, name: str = "regard model"
    ) -> None:
        attention = getattr(model.decoder, "attention", None)
        if not model.attends or not isinstance(attention, nn.Module):
            raise InputError(
                explain(
                    "from_regard(): there are no weights to audit",
                    expected="a model with Bahdanau's or Luong's attention",
                    got=f"attention {model.config.attention!r}",
                )
            )
        self.model = model.eval()
        self.name = f"{name}, {model.config.attention} attention, each output step"
        self.classes = [target.name(i) for i in range(len(target))]
        self._attention = attention
        self._vocabs = {"source": source, "target": target}
        self._source, self._target = (
            {symbol: FIRST + i for i, symbol in enumerate(vocab.symbols)}
            for vocab in (source, target)
        )

    def split(self, side: str, text: str) -> list[str]:
        """Return the symbols of a text of the "source" or "target", as the model reads it."""
        return list(self._vocabs[side].split(text))

    def predict(self, batch: Sequence[Input]) -> Numbers:
        """Return probabilities (batch, target symbols) of the next symbol."""
        scores, _ = self._forced(batch)
        return scores

    def weights(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return the weights (T_enc,) with which each next symbol is answered."""
        _, weights = self._forced(batch)
        return [row[: len(one.tokens)] for one, row in zip(batch, weights, strict=True)]

    def predict_with(self, batch: Sequence[Input], weights: Sequence[Numbers]) -> Numbers:
        """Return probabilities (batch, target symbols) with other weights at the asked step."""
        with torch.no_grad():
            scores = self._stepped(batch, weights)
        found: Numbers = scores.double().softmax(-1).numpy()
        return found

    def token_gradient(self, batch: Sequence[Input]) -> list[Numbers]:
        """Return abs(input x gradient) of the predicted symbol (T_enc,), all weights held."""
        seen: list[Tensor] = []

        def keep(module: nn.Module, args: Any, output: Tensor) -> None:
            seen.append(output)

        handle = self.model.encoder.embedding.register_forward_hook(keep)
        try:
            with torch.enable_grad():
                p = self._stepped(batch, None).softmax(-1).amax(-1).sum()
                (gradient,) = torch.autograd.grad(p, seen[0])
        finally:
            handle.remove()
        rows = (gradient * seen[0].detach()).sum(-1).abs().double().numpy()
        return [row[: len(one.tokens)] for one, row in zip(batch, rows, strict=True)]

    def _forced(self, batch: Sequence[Input]) -> tuple[Numbers, Numbers]:
        source, lengths = self._sources(batch)
        steps = torch.tensor([len(one.before or ()) for one in batch])
        inputs = torch.full((len(batch), int(steps.max()) + 1), PAD)
        inputs[:, 0] = BOS
        for row, one in enumerate(batch):
            inputs[row, 1 : 1 + int(steps[row])] = torch.tensor(
                self._ids(one.before or (), self._target), dtype=torch.long
            )
        rows = torch.arange(len(batch))
        with torch.no_grad():
            scored = self.model(source, inputs, lengths)
            scores = scored.symbol_scores[rows, steps].double().softmax(-1)
        assert scored.weights is not None  # asked when the case was made
        return scores.numpy(), scored.weights[rows, steps].double().numpy()

    def _stepped(self, batch: Sequence[Input], weights: Sequence[Numbers] | None) -> Tensor:
        """Run step by step, so that one step's weights can be others; None cuts gradients."""
        source, lengths = self._sources(batch)
        steps = [len(one.before or ()) for one in batch]
        befores = [self._ids(one.before or (), self._target) for one in batch]
        memory, state = self.model.start(source, lengths)
        found: list[Tensor | None] = [None] * len(batch)
        for step in range(max(steps) + 1):
            previous = [
                BOS if step == 0 else (ids[step - 1] if step <= len(ids) else PAD)
                for ids in befores
            ]
            at = [row for row, last in enumerate(steps) if last == step]
            given = {} if weights is None else {row: weights[row] for row in at}
            with _replaced(self._attention, given, cut=weights is None):
                scores, state, _ = self.model.step(torch.tensor(previous), memory, state)
            for row in at:
                found[row] = scores[row]
        return torch.stack([scores for scores in found if scores is not None])

    def _sources(self, batch: Sequence[Input]) -> tuple[Tensor, Tensor | None]:
        return collate_sources([self._ids(one.tokens, self._source) for one in batch])

    @staticmethod
    def _ids(tokens: Sequence[str], ids: dict[str, int]) -> list[int]:
        return [ids.get(token, UNK) for token in tokens]


@contextmanager
def _replaced(attention: nn.Module, given: dict[int, Numbers], *, cut: bool) -> Iterator[None]:
    """While the block runs, give some rows other weights, or let no gradient through any."""

    def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        weights = output[1].detach().clone()  # (batch, 1, T_enc)
        for row, own in given.items():
            weights[row] = 0.0
            weights[row, 0, : len(own)] = torch.as_tensor(np.asarray(own), dtype=weights.dtype)
        return type(output)(torch.matmul(weights, args[1].value), weights)

    if not given and not cut:
        yield
        return
    handle = attention.register_forward_hook(hook)
    try:
        yield
    finally:
        handle.remove()
