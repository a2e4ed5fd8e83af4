"""Text in, text out: everything that a model's answers need but the model.

Whatever runs a model, reading texts, unknown symbols, batches and limits are the same. Nothing
here loads PyTorch.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from regard.errors import InputError, explain
from regard.seq2seq.answers import UNKNOWN, Prediction, answer_of
from regard.seq2seq.description import Description
from regard.seq2seq.forced import Forced
from regard.seq2seq.search import Constraint, Hypothesis, SearchSettings
from regard.seq2seq.search.written import Followed
from regard.seq2seq.vocab import UNK

__all__ = ["Asked", "Rewriter"]

_FEATURE = "\t"  # begins a feature's symbol, which is no part of a text

_GREEDY, _FREE = SearchSettings(), Constraint()


@dataclass(frozen=True)
class Asked:
    """One batch of a search.

    Attributes
    ----------
    ids : list of lists of int
        Of the sources, none of them empty.
    numbers : list of int
        The sources' places among all that are answered, by which drawing tells them apart.
    limits : list of int
        Symbols that each target may have.
    how : SearchSettings
    constraint : Constraint or None
        None where everything may be answered.
    need_weights : bool
    """

    ids: list[list[int]]
    numbers: list[int]
    limits: list[int]
    how: SearchSettings
    constraint: Constraint | None
    need_weights: bool


class Rewriter:
    """Answers texts by a search; a subclass runs the model.

    Parameters
    ----------
    description : Description
        The vocabularies, and where to stop.
    """

    def __init__(self, description: Description) -> None:
        self.description = description

    @property
    def attends(self) -> bool:
        """Whether answers come with attention weights."""
        raise NotImplementedError

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
        how = search or _GREEDY
        self._check_unknown(unknown)
        read = [self._read(i, source, unknown) for i, source in enumerate(sources)]
        looks = need_weights or (unknown == "copy" and any(unknowns for _, _, unknowns in read))
        constraint = constraint or _FREE
        if how.min_length > constraint.shortest:
            constraint = replace(constraint, shortest=how.min_length)
        found: dict[int, Prediction] = {}
        self.get_ready()
        for rows in _batches([len(ids) for _, ids, _ in read], batch_tokens // how.beam):
            asked = Asked(
                ids=[read[row][1] for row in rows],
                numbers=rows,
                limits=[self._limit(len(read[row][1]), how, constraint) for row in rows],
                how=how,
                constraint=None if constraint.free else constraint,
                need_weights=looks,
            )
            for row, hypotheses in zip(rows, self.answer(asked), strict=True):
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

    def force(
        self,
        pairs: Sequence[tuple[str, str]],
        *,
        unknown: str = "keep",
        batch_tokens: int = 4096,
    ) -> list[Forced]:
        """Read known targets to the model: what it makes of them, and where it looks.

        Parameters
        ----------
        pairs : sequence of (source, target)
            Both with at least one symbol; ``lemma<TAB>features`` for a model with features.
        unknown : {"keep", "drop", "fail"}
            What to do with source symbols that the model never saw. Symbols of a target are
            always kept: the model reads that something stood there.
        batch_tokens : int
            Symbols that are read at once, padding included.

        Returns
        -------
        forced : list of Forced
            In the order of the pairs.

        Raises
        ------
        InputError
            A side has no symbol, or one that is unknown where that fails; or an option is
            refused.
        """
        if unknown == "copy":
            raise _refused_unknown(unknown, "keep, drop or fail: a known target is not changed")
        self._check_unknown(unknown)
        vocab = self.description.target
        read = [self._read(i, source, unknown) for i, (source, _) in enumerate(pairs)]
        targets = [vocab.encode(target) for _, target in pairs]
        empty = next((i for i, ids in enumerate(targets) if not ids), None)
        if empty is not None:
            raise InputError(
                explain(
                    f"force(): target {empty} is empty",
                    expected="targets with at least one symbol",
                    got=repr(pairs[empty][1])[:80],
                )
            )
        sizes = [
            max(len(ids), len(target) + 1)
            for (_, ids, _), target in zip(read, targets, strict=True)
        ]
        found: dict[int, Forced] = {}
        self.get_ready()
        for rows in _batches(sizes, batch_tokens):
            followed = self.forced([read[r][1] for r in rows], [targets[r] for r in rows])
            for at, row in enumerate(rows):
                symbols, ids, unknowns = read[row]
                steps = len(targets[row]) + 1
                weights = followed.weights
                found[row] = Forced(
                    source=pairs[row][0],
                    target=pairs[row][1],
                    source_symbols=tuple(symbols),
                    target_symbols=tuple(vocab.split(pairs[row][1])),
                    unknown=tuple(unknowns),
                    unknown_target=tuple(vocab.unknown(pairs[row][1])),
                    log_probs=tuple(followed.log_probs[at, :steps].tolist()),
                    # A copy: a view would keep the whole batch's weights alive.
                    weights=None if weights is None else weights[at, :steps, : len(ids)].copy(),
                )
        return [found[row] for row in range(len(pairs))]

    def forced(self, sources: list[list[int]], targets: list[list[int]]) -> Followed:
        """Read one target for each source of a batch.

        Raises
        ------
        NotImplementedError
            Here; each runtime has its own.
        """
        raise NotImplementedError

    def get_ready(self) -> None:
        """Prepare for some batches, with the weights as they are now."""

    def answer(self, asked: Asked) -> list[list[Hypothesis]]:
        """Return the hypotheses of every source of a batch, the best first.

        Raises
        ------
        NotImplementedError
            Here; each runtime has its own.
        """
        raise NotImplementedError

    def _limit(self, symbols: int, how: SearchSettings, constraint: Constraint) -> int:
        limit = how.max_length
        if limit is None and constraint.trie is not None:
            limit = constraint.trie.longest  # a listed target is never cut
        if limit is None:
            limit = self.description.longest_answer(symbols)
        return max(limit, constraint.shortest)

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
            raise _refused_unknown(unknown, " or ".join(UNKNOWN))
        if unknown == "copy" and not self.attends:
            raise InputError(
                explain(
                    "predict(): copying asks for weights that the model has not",
                    expected="a model with attention",
                    got='attention "none"',
                    help="keep or drop unknown symbols",
                )
            )


def _refused_unknown(unknown: str, expected: str) -> InputError:
    return InputError(
        explain("`unknown` is refused", expected=expected, got=repr(unknown)[:80])
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
