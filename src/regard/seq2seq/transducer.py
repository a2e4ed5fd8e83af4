"""A model with its vocabularies: text in, text out."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.errors import InputError, explain
from regard.seq2seq.batch import collate_sources
from regard.seq2seq.checkpoint import Description, load_model
from regard.seq2seq.metrics import ErrorRates, error_rates
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.search import Hypothesis, greedy

__all__ = ["Prediction", "Transducer"]


@dataclass(frozen=True)
class Prediction:
    """A model's answer to one source.

    Attributes
    ----------
    source : str
        As it was given.
    source_symbols, target_symbols : tuple of str
        One for each column and row of the attention weights.
    target : str
    unknown : tuple of str
        Source symbols that the model never saw in training.
    hypothesis : Hypothesis
        Probabilities and attention weights.
    """

    source: str
    source_symbols: tuple[str, ...]
    target: str
    target_symbols: tuple[str, ...]
    unknown: tuple[str, ...]
    hypothesis: Hypothesis


class Transducer:
    """Rewrites texts with a trained model.

    Parameters
    ----------
    model : Seq2Seq
    description : Description
        Its vocabularies, and where to stop.
    """

    def __init__(self, model: Seq2Seq, description: Description) -> None:
        self.model = model
        self.description = description

    @classmethod
    def load(cls, directory: str | Path) -> "Transducer":
        """Read a model directory.

        Raises
        ------
        InputError
            As :func:`regard.seq2seq.checkpoint.load_model` does.
        """
        return cls(*load_model(directory))

    def predict(
        self, sources: Sequence[str], *, batch_tokens: int = 4096, need_weights: bool = True
    ) -> list[Prediction]:
        """Answer every source.

        Parameters
        ----------
        sources : sequence of str
            Each with at least one symbol.
        batch_tokens : int
            Source symbols that are answered at once, padding included.
        need_weights : bool
            Keep the attention weights.

        Returns
        -------
        predictions : list of Prediction
            In the order of the sources.

        Raises
        ------
        InputError
            A source has no symbol.
        """
        vocab = self.description.source
        ids = [vocab.encode(source) for source in sources]
        if not all(ids):
            raise InputError(
                explain(
                    f"predict(): source {next(i for i, s in enumerate(ids) if not s)} is empty",
                    expected="sources with at least one symbol",
                    got=repr(sources[next(i for i, s in enumerate(ids) if not s)]),
                )
            )
        found: dict[int, Prediction] = {}
        for rows in _batches([len(s) for s in ids], batch_tokens):
            source, lengths = collate_sources([ids[row] for row in rows])
            hypotheses = greedy(
                self.model,
                source,
                lengths,
                max_length=[self.description.longest_answer(len(ids[row])) for row in rows],
                need_weights=need_weights,
            )
            for row, hypothesis in zip(rows, hypotheses, strict=True):
                found[row] = self._prediction(sources[row], hypothesis)
        return [found[row] for row in range(len(sources))]

    def error_rates(self, pairs: Pairs) -> ErrorRates:
        """Score the model against the references of some pairs.

        Notes
        -----
        Symbols are compared, not ids: a reference with a symbol that the model never saw can
        never be matched, and counts as an error.
        """
        references = pairs.references()
        target = self.description.target
        predictions = self.predict(list(references), need_weights=False)
        return error_rates(
            [prediction.target_symbols for prediction in predictions],
            [[target.split(text) for text in texts] for texts in references.values()],
        )

    def _prediction(self, source: str, hypothesis: Hypothesis) -> Prediction:
        vocab, target = self.description.source, self.description.target
        symbols = tuple(target.name(i) for i in hypothesis.ids)
        return Prediction(
            source=source,
            source_symbols=tuple(vocab.split(source)),
            target=target.join(symbols),
            target_symbols=symbols,
            unknown=tuple(vocab.unknown(source)),
            hypothesis=hypothesis,
        )


def _batches(lengths: list[int], batch_tokens: int) -> Iterator[list[int]]:
    """Group rows of similar length, so that little is padded."""
    rows = sorted(range(len(lengths)), key=lengths.__getitem__)
    batch: list[int] = []
    for row in rows:
        if batch and (len(batch) + 1) * lengths[row] > batch_tokens:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
