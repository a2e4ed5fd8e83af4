"""A model with its vocabularies: text in, text out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from regard.errors import InputError, explain
from regard.seq2seq.answers import UNKNOWN, Answer, Prediction, answer_of
from regard.seq2seq.batch import collate_sources
from regard.seq2seq.checkpoint import Description
from regard.seq2seq.ensemble import Ensemble, joined, load_any
from regard.seq2seq.metrics import ErrorRates, error_rates
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.search import Constraint, Hypothesis, SearchSettings, Stepper, search
from regard.seq2seq.swift import swift
from regard.seq2seq.vocab import UNK

__all__ = ["Answer", "Prediction", "Transducer"]

_FEATURE = "\t"  # begins a feature's symbol, which is no part of a text


class Transducer:
    """Rewrites texts with a trained model.

    Parameters
    ----------
    model : Seq2Seq or Ensemble
    description : Description
        Its vocabularies, and where to stop.
    """

    def __init__(self, model: Seq2Seq | Ensemble, description: Description) -> None:
        self.model = model
        self.description = description

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

    def predict(
        self,
        sources: Sequence[str],
        *,
        search: SearchSettings | None = None,
        constraint: Constraint | None = None,
        unknown: str = "keep",
        batch_tokens: int = 4096,
        need_weights: bool = True,
    ) -> list[Prediction]:
        r"""Answer every source.

        Parameters
        ----------
        sources : sequence of str
            Each with at least one symbol; ``lemma<TAB>features`` for a model with features.
        search : SearchSettings, optional
            How to search; greedy by default.
        constraint : Constraint, optional
            What may be answered, as :func:`regard.seq2seq.search.wanted` makes it from texts.
        unknown : {"keep", "copy", "drop", "fail"}
            What to do with source symbols that the model never saw
            (:data:`regard.seq2seq.answers.UNKNOWN`). Copying needs attention.
        batch_tokens : int
            Source symbols that are answered at once, padding and beams included: memory is
            bounded by it, and the longest answer.
        need_weights : bool
            Keep the attention weights.

        Returns
        -------
        predictions : list of Prediction
            In the order of the sources.

        Raises
        ------
        InputError
            A source has no symbol, or one that is unknown where that fails; or an option is
            refused.
        """
        how = search or SearchSettings()
        self._check_unknown(unknown)
        read = [self._read(i, source, unknown) for i, source in enumerate(sources)]
        looks = need_weights or (unknown == "copy" and any(unknowns for _, _, unknowns in read))
        found: dict[int, Prediction] = {}
        stepper = swift(self.model)
        for rows in _batches([len(ids) for _, ids, _ in read], batch_tokens // how.beam):
            answers = self._search(
                stepper,
                [read[row][1] for row in rows],
                rows=rows,
                how=how,
                constraint=constraint,
                need_weights=looks,
            )
            for row, hypotheses in zip(rows, answers, strict=True):
                symbols, ids, unknowns = read[row]
                copied: list[str | None] = []
                if unknown == "copy" and unknowns:
                    copied = [
                        symbol if index == UNK and not symbol.startswith(_FEATURE) else None
                        for symbol, index in zip(symbols, ids, strict=True)
                    ]
                found[row] = Prediction(
                    source=sources[row],
                    source_symbols=tuple(symbols),
                    unknown=tuple(unknowns),
                    answers=tuple(
                        answer_of(hypothesis, self.description.target, copied)
                        for hypothesis in hypotheses
                    ),
                )
        return [found[row] for row in range(len(sources))]

    def error_rates(self, pairs: Pairs, *, search: SearchSettings | None = None) -> ErrorRates:
        """Score the model against the references of some pairs.

        Parameters
        ----------
        pairs : Pairs
            Several with one source give it several references.
        search : SearchSettings, optional
            How to search; greedy by default.

        Notes
        -----
        Symbols are compared, not ids: a reference with a symbol that the model never saw can
        never be matched, and counts as an error.
        """
        references = pairs.references()
        target = self.description.target
        predictions = self.predict(list(references), search=search, need_weights=False)
        return error_rates(
            [prediction.target_symbols for prediction in predictions],
            [[target.split(text) for text in texts] for texts in references.values()],
        )

    def _read(
        self, number: int, source: str, unknown: str
    ) -> tuple[list[str], list[int], list[str]]:
        """Return a source's symbols, their ids, and those that are unknown."""
        vocab = self.description.source
        symbols, ids = vocab.split(source), vocab.encode(source)
        unknowns: list[str] = []
        if UNK in ids:
            unknowns = list(
                dict.fromkeys(s for s, i in zip(symbols, ids, strict=True) if i == UNK)
            )
            if unknown == "drop":
                symbols = [s for s, i in zip(symbols, ids, strict=True) if i != UNK]
                ids = [i for i in ids if i != UNK]
        if not ids:
            raise InputError(
                explain(
                    f"predict(): source {number} is empty",
                    expected="sources with at least one symbol",
                    got=repr(source)[:80] + " without its unknown symbols" * bool(unknowns),
                )
            )
        if unknowns and unknown == "fail":
            raise InputError(
                explain(
                    f"predict(): source {number} has symbols that the model never saw",
                    expected="symbols of the training data",
                    got=" ".join(map(repr, unknowns[:10])),
                    help="keep, copy or drop unknown symbols",
                )
            )
        return symbols, ids, unknowns

    def _check_unknown(self, unknown: str) -> None:
        if unknown not in UNKNOWN:
            raise InputError(
                explain(
                    "predict(): `unknown` is refused",
                    expected=" or ".join(UNKNOWN),
                    got=repr(unknown)[:80],
                )
            )
        if unknown == "copy" and not self.model.attends:
            raise InputError(
                explain(
                    "predict(): copying asks for weights that the model has not",
                    expected="a model with attention",
                    got='attention "none"',
                    help="keep or drop unknown symbols",
                )
            )

    def _search(
        self,
        stepper: Stepper,
        ids: list[list[int]],
        *,
        rows: list[int],
        how: SearchSettings,
        constraint: Constraint | None,
        need_weights: bool,
    ) -> list[list[Hypothesis]]:
        constraint = constraint or Constraint()
        shortest = max(constraint.shortest, how.min_length)
        constraint = replace(constraint, shortest=shortest)
        source, lengths = collate_sources(ids)
        device = next(self.model.parameters()).device
        limits = []
        for each in ids:
            limit = how.max_length
            if limit is None and constraint.trie is not None:
                limit = constraint.trie.longest  # a listed target is never cut
            if limit is None:
                limit = self.description.longest_answer(len(each))
            limits.append(max(limit, shortest))
        return search(
            stepper,
            source.to(device),
            None if lengths is None else lengths.to(device),
            how,
            max_length=limits,
            numbers=rows,
            constraint=None if constraint.free else constraint,
            need_weights=need_weights,
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
