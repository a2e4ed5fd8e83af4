"""An exported model with its vocabularies: text in, text out, with NumPy alone."""

from functools import cached_property
from pathlib import Path

import numpy as np

from regard.seq2seq.description import Description
from regard.seq2seq.rewriter import Asked, Rewriter
from regard.seq2seq.runtime.again import forced, look_again
from regard.seq2seq.runtime.alone import Alone
from regard.seq2seq.runtime.beam import beam_search
from regard.seq2seq.runtime.cells import Ids
from regard.seq2seq.runtime.exported import read_exported
from regard.seq2seq.runtime.follow import drawn, greedy
from regard.seq2seq.runtime.model import Model, Steps, model_of
from regard.seq2seq.search import Hypothesis
from regard.seq2seq.search.hypothesis import best_first
from regard.seq2seq.search.record import score_of
from regard.seq2seq.search.written import Followed
from regard.seq2seq.vocab import EOS, PAD

__all__ = ["NUMPY_FILE", "NumpyTransducer", "padded"]

NUMPY_FILE = "model.npz"
"""The file in a directory that ``regard export --to numpy`` wrote."""

# Weights that a beam may keep on the way, 256 MiB of them; above, the answers' are computed
# once more at the end.
_KEPT_WEIGHTS = 1 << 26


class NumpyTransducer(Rewriter):
    """Rewrites texts as :class:`regard.seq2seq.transducer.Transducer`, without PyTorch.

    Parameters
    ----------
    model : Steps
        As :class:`~regard.seq2seq.runtime.model.Model` is.
    description : Description
    """

    def __init__(self, model: Steps, description: Description) -> None:
        super().__init__(description)
        self.model = model

    @classmethod
    def load(cls, path: str | Path) -> "NumpyTransducer":
        """Read what ``regard export --to numpy`` wrote: a file, or a directory with one.

        Raises
        ------
        InputError
            It is missing, damaged, of another format or another program's.
        """
        path = Path(path)
        found = read_exported(path / NUMPY_FILE if path.is_dir() else path)
        return cls(model_of(found.configs, found.weights), found.description)

    @cached_property
    def _alone(self) -> Alone | None:
        return self.model.alone() if isinstance(self.model, Model) else None

    @property
    def attends(self) -> bool:
        """Whether answers come with attention weights."""
        return self.model.attends

    def answer(self, asked: Asked) -> list[list[Hypothesis]]:
        """Return the hypotheses of every source, the best first."""
        how = asked.how
        if len(asked.ids) == how.beam == 1 and how.temperature is None and not asked.constraint:
            alone = self._alone
            if alone is not None:
                return [[_followed(alone, asked)]]
        source, lengths = padded(asked.ids)
        if how.temperature is not None:
            turns = [
                drawn(
                    self.model, source, lengths, asked, temperature=how.temperature, turn=turn
                )
                for turn in range(how.nbest)
            ]
            return [best_first(each) for each in zip(*turns, strict=True)]
        if how.beam == 1:
            # A beam of one finds the same; this does less for it.
            return [[each] for each in greedy(self.model, source, lengths, asked)]
        kept = how.beam * max(asked.limits) * source.size
        later = asked.need_weights and kept > _KEPT_WEIGHTS
        best = beam_search(
            self.model, source, lengths, asked, need_weights=asked.need_weights and not later
        )
        return look_again(self.model, source, lengths, best) if later else best

    def forced(self, sources: list[list[int]], targets: list[list[int]]) -> Followed:
        """Read one target for each source of a batch."""
        source, lengths = padded(sources)
        return forced(self.model, source, lengths, targets)


def _followed(alone: Alone, asked: Asked) -> Hypothesis:
    """Answer the one source of a batch greedily."""
    (source,), (limit,), ranking = asked.ids, asked.limits, asked.how.ranking
    looks = asked.need_weights or bool(ranking.coverage)
    ids, log_probs, weights = alone.follow(source, limit, need_weights=looks)
    finished = ids[-1] == EOS
    if not finished:  # the step beyond the limit was only for an end
        log_probs.pop()
    length = len(log_probs) - finished
    looked = None if weights is None else weights[: len(log_probs)]
    return Hypothesis(
        ids=tuple(ids[:length]),
        log_probs=tuple(log_probs),
        finished=finished,
        weights=looked[:length].copy() if looked is not None and asked.need_weights else None,
        score=score_of(ranking, log_probs, looked),
    )


def padded(ids: list[list[int]]) -> tuple[Ids, Ids]:
    """Return sources as (batch, T_enc), and their lengths."""
    lengths = np.array([len(each) for each in ids])
    source = np.full((len(ids), int(lengths.max())), PAD)
    for row, each in zip(source, ids, strict=True):
        row[: len(each)] = each
    return source, lengths
