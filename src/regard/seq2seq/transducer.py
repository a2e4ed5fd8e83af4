"""A model with its vocabularies: text in, text out."""

from pathlib import Path

from regard.seq2seq.answers import Answer, Prediction
from regard.seq2seq.batch import collate_sources
from regard.seq2seq.description import Description
from regard.seq2seq.ensemble import Ensemble, joined, load_any
from regard.seq2seq.metrics import ErrorRates
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.rates import rates_of
from regard.seq2seq.rewriter import Asked, Rewriter
from regard.seq2seq.search import Hypothesis, SearchSettings, Stepper, search
from regard.seq2seq.search.forced import forced
from regard.seq2seq.search.written import Followed
from regard.seq2seq.swift import swift

__all__ = ["Answer", "Prediction", "Transducer"]


class Transducer(Rewriter):
    """Rewrites texts with a trained model.

    Parameters
    ----------
    model : Seq2Seq or Ensemble
    description : Description
        Its vocabularies, and where to stop.
    """

    def __init__(self, model: Seq2Seq | Ensemble, description: Description) -> None:
        super().__init__(description)
        self.model = model
        self._stepper: Stepper = model

    @classmethod
    def load(cls, directory: str | Path, *more: str | Path) -> "Transducer":
        """Read a model directory, or an ensemble's.

        Parameters
        ----------
        directory : path
        *more : path
            Further models to answer together with the first.

        Raises
        ------
        InputError
            As :func:`regard.seq2seq.checkpoint.load_model` does, or the models have different
            vocabularies.
        """
        loaded = [load_any(path) for path in (directory, *more)]
        if len(loaded) == 1:
            return cls(*loaded[0])
        singles: list[tuple[Seq2Seq, Description]] = []
        names: list[str] = []
        for (model, description), path in zip(loaded, (directory, *more), strict=True):
            members = [model] if isinstance(model, Seq2Seq) else model.members
            singles += [(member, description) for member in members]
            names += [str(path)] * len(members)
        return cls(*joined(singles, names))

    @property
    def attends(self) -> bool:
        """Whether answers come with attention weights."""
        return self.model.attends

    def error_rates(self, pairs: Pairs, *, search: SearchSettings | None = None) -> ErrorRates:
        """Score the model as :func:`regard.seq2seq.rates.rates_of` does.

        Parameters
        ----------
        pairs : Pairs
            Several with one source give it several references.
        search : SearchSettings, optional
            How to search; greedy by default.
        """
        return rates_of(self, pairs, search=search)

    def get_ready(self) -> None:
        """Prepare for some batches, with the weights as they are now."""
        self._stepper = swift(self.model)

    def answer(self, asked: Asked) -> list[list[Hypothesis]]:
        """Return the hypotheses of every source, the best first."""
        source, lengths = collate_sources(asked.ids)
        device = next(self.model.parameters()).device
        return search(
            self._stepper,
            source.to(device),
            None if lengths is None else lengths.to(device),
            asked.how,
            max_length=asked.limits,
            numbers=asked.numbers,
            constraint=asked.constraint,
            need_weights=asked.need_weights,
        )

    def forced(self, sources: list[list[int]], targets: list[list[int]]) -> Followed:
        """Read one target for each source of a batch."""
        source, lengths = collate_sources(sources)
        device = next(self.model.parameters()).device
        return forced(
            self._stepper,
            source.to(device),
            None if lengths is None else lengths.to(device),
            targets,
        )
