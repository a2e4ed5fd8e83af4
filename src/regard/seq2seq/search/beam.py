"""Beam search: the likeliest few beginnings of every length are followed together."""

from dataclasses import dataclass

import torch
from jaxtyping import Integer
from torch import Tensor

from regard.axes import checked
from regard.errors import InputError, explain
from regard.seq2seq.search.constraint import Constraint, forbid_reserved
from regard.seq2seq.search.follow import arrayed, quiet, restrict
from regard.seq2seq.search.hypothesis import Hypothesis
from regard.seq2seq.search.limits import limits_of
from regard.seq2seq.search.ranking import Ranking
from regard.seq2seq.search.stepper import Stepper
from regard.seq2seq.search.trace import Found, Trace
from regard.seq2seq.vocab import BOS, EOS

__all__ = ["beam_search"]

# Sources without a beginning left are dropped when they make up this share of the batch:
# dropping copies the memory of the others, and until then they cost time and nothing else.
_DROP = 1 / 4


@checked
def beam_search(
    model: Stepper,
    source: Integer[Tensor, "batch T_enc"],
    source_lengths: Integer[Tensor, " batch"] | None = None,
    *,
    max_length: int | list[int],
    beam: int = 5,
    nbest: int = 1,
    ranking: Ranking | None = None,
    constraint: Constraint | None = None,
    need_weights: bool = True,
) -> list[list[Hypothesis]]:
    """Follow the `beam` likeliest beginnings at every step; return the best `nbest` answers.

    Parameters
    ----------
    model : Stepper
        Left in the mode (training or not) that it came in; runs without dropout here.
    source : (batch, T_enc)
        Ids.
    source_lengths : (batch,), optional
        None: no source is padded.
    max_length : int or list of int
        Symbols that a target may have, the end not counted; one number for all, or one each.
        At least 0.
    beam : int
        Beginnings that are kept at every step, from 1.
    nbest : int
        Answers a source, from 1 to `beam`.
    ranking : Ranking, optional
        Penalties of length and coverage; none by default.
    constraint : Constraint, optional
        What may be answered.
    need_weights : bool
        Keep the attention weights; costs memory, changes nothing else.

    Returns
    -------
    found : list of lists of Hypothesis
        In the order of the batch; the best first, all different, those that were cut at the
        limit last. Fewer than `nbest` only where a constraint leaves no more.

    Raises
    ------
    InputError
        A number is outside its range, or coverage is asked of a model without attention.

    Notes
    -----
    Of all continuations of the kept beginnings the `beam` likeliest are taken; those of them
    that end become answers, the others are kept. So a beam of 1 is the greedy search, whatever
    the ranking, and a beam as wide as there are continuations finds the best answers of all.

    A beginning is given up when no continuation of it can score above the `nbest` best answers
    found, a source when it has no beginning left: the answers are those that going on to the
    limit would give. A source then leaves the batch.
    """
    ranking = ranking or Ranking()
    _check(model, beam, nbest, ranking)
    shortest = constraint.shortest if constraint is not None else 0
    limits = limits_of("beam_search", max_length, source.shape[0], shortest)
    if not limits:
        return []
    with quiet(model):
        search = _Beams(
            model,
            source,
            source_lengths,
            limits=limits,
            beam=beam,
            nbest=nbest,
            ranking=ranking,
            constraint=constraint,
        )
        return search.run(need_weights)


def _check(model: Stepper, beam: int, nbest: int, ranking: Ranking) -> None:
    if beam < 1 or not 1 <= nbest <= beam:
        raise InputError(
            explain(
                "beam_search(): `beam` and `nbest` are refused",
                expected="a beam from 1, and from 1 to that many answers",
                got=f"beam={beam}, nbest={nbest}",
            )
        )
    if ranking.coverage and not model.attends:
        raise InputError(
            explain(
                "beam_search(): the coverage penalty asks for weights that the model has not",
                expected="a model with attention",
                got='attention "none"',
                help="leave the coverage penalty out",
            )
        )


@dataclass
class _Best:
    """The best answers of every source so far; places without one score minus infinity."""

    scores: Tensor
    """(sources, nbest), the best first."""

    places: Tensor
    """(sources, nbest, 2): the step, and the row of that step that answered."""

    log_probs: Tensor
    """(sources, nbest): of the end; of no meaning where the answer was cut."""

    def add(self, scores: Tensor, places: Tensor, log_probs: Tensor) -> None:
        """Take in (sources, any number) more."""
        joined = torch.cat([self.scores, scores], 1)
        self.scores, order = joined.topk(self.scores.shape[1], dim=1)
        self.log_probs = torch.cat([self.log_probs, log_probs], 1).gather(1, order)
        both = torch.cat([self.places, places], 1)
        self.places = both.gather(1, order.unsqueeze(-1).expand(-1, -1, 2))

    def select(self, kept: Tensor) -> "_Best":
        return _Best(self.scores[kept], self.places[kept], self.log_probs[kept])

    @classmethod
    def none_yet(cls, sources: int, nbest: int, device: torch.device) -> "_Best":
        scores = torch.full((sources, nbest), -torch.inf, device=device)
        places = torch.zeros(sources, nbest, 2, dtype=torch.long, device=device)
        return cls(scores, places, torch.zeros_like(scores))


class _Beams:
    """One batch: `sources` still in it, each with `width` rows, one for each beginning."""

    def __init__(
        self,
        model: Stepper,
        source: Tensor,
        lengths: Tensor | None,
        *,
        limits: list[int],
        beam: int,
        nbest: int,
        ranking: Ranking,
        constraint: Constraint | None,
    ) -> None:
        self._model, self._beam, self._ranking = model, beam, ranking
        self._constraint = constraint
        batch, t_enc = source.shape
        device = source.device
        self._sources = torch.arange(batch, device=device)  # which are still in the batch
        self._limits = torch.tensor(limits, device=device)
        self._step = 0
        self._memory, self._state = model.start(source, lengths)
        self._previous = torch.full((batch,), BOS, device=device)
        # The logarithm of a beginning's probability; minus infinity once it is given up.
        self._scores = torch.zeros(batch, 1, device=device)
        self._nodes = constraint.start(batch) if constraint is not None else None
        self._real: Tensor | None = None
        self._looked: Tensor | None = None
        if ranking.coverage:
            columns = torch.arange(t_enc, device=device)
            if lengths is not None:
                self._real = columns < lengths.unsqueeze(1)
            self._looked = torch.zeros(batch, t_enc, device=device)
        self._best = _Best.none_yet(batch, nbest, device)
        self._cut = _Best.none_yet(batch, nbest, device)
        self._done: list[tuple[Tensor, _Best, _Best]] = []
        self._trace = Trace([t_enc] * batch if lengths is None else lengths.tolist())

    def run(self, need_weights: bool) -> list[list[Hypothesis]]:
        while len(self._sources):
            self._advance(need_weights)
        return self._answers()

    def _advance(self, need_weights: bool) -> None:
        sources, width = self._scores.shape
        scores, self._state, weights = self._model.step(
            self._previous, self._memory, self._state
        )
        before = self._looked
        if self._looked is not None and weights is not None:
            self._looked = self._looked + weights
        log_probs = torch.log_softmax(forbid_reserved(scores), dim=-1)
        if self._constraint is not None:
            log_probs = restrict(log_probs, self._constraint, self._nodes, self._step)
        symbols = log_probs.shape[1]
        sums = self._scores.unsqueeze(-1) + log_probs.view(sources, width, symbols)
        count = min(self._beam, width * symbols)
        totals, flat = sums.view(sources, -1).topk(count, dim=1)
        slots = torch.div(flat, symbols, rounding_mode="floor")
        chosen = flat - slots * symbols
        first = torch.arange(sources, device=flat.device).unsqueeze(1) * width
        parents = first + slots
        each = log_probs.view(-1)[parents * symbols + chosen]
        self._trace.looks(arrayed(weights) if need_weights and weights is not None else None)

        ends = (chosen == EOS) & (totals > -torch.inf)
        if bool(ends.any()):
            self._finish(ends, totals, parents, each)
        totals = totals.masked_fill(ends, -torch.inf)
        at_limit = self._limits <= self._step
        if bool(at_limit.any()):
            self._cut_off(at_limit, ends, parents, before)
            totals = totals.masked_fill(at_limit.unsqueeze(1), -torch.inf)
        # What cannot win any more is given up.
        bound = self._ranking.bound(totals, self._limits + 1)
        totals = totals.masked_fill(bound <= self._best.scores[:, -1:], -torch.inf)
        self._go_on(totals, parents, chosen, each)

    def _finish(self, ends: Tensor, totals: Tensor, parents: Tensor, each: Tensor) -> None:
        looked = None if self._looked is None else self._looked[parents]
        real = None if self._real is None else self._real[parents]
        scores = self._ranking.score(totals, self._step + 1, looked, real)
        scores = scores.masked_fill(~ends, -torch.inf)
        self._best.add(scores, self._places(parents), each)

    def _cut_off(
        self, at_limit: Tensor, ends: Tensor, parents: Tensor, looked: Tensor | None
    ) -> None:
        """Keep the beginnings that have reached the limit and did not end there."""
        sources, width = self._scores.shape
        alive = (self._scores > -torch.inf) & at_limit.unsqueeze(1)
        ended = torch.zeros(sources * width, dtype=torch.bool, device=ends.device)
        ended[parents[ends]] = True
        scores = self._ranking.score(
            self._scores.view(-1), max(self._step, 1), looked, self._real
        )
        gone = ~alive | ended.view(sources, width)
        scores = scores.view(sources, width).masked_fill(gone, -torch.inf)
        rows = torch.arange(sources * width, device=ends.device).view(sources, width)
        self._cut.add(scores, self._places(rows), torch.zeros_like(scores))

    def _places(self, rows: Tensor) -> Tensor:
        return torch.stack([torch.full_like(rows, self._step), rows], -1)

    def _go_on(self, totals: Tensor, parents: Tensor, chosen: Tensor, each: Tensor) -> None:
        alive = (totals > -torch.inf).any(1)
        gone_count = len(alive) - int(alive.sum())
        dropped = gone_count > _DROP * len(alive)
        width = self._scores.shape[1]
        if dropped:
            gone = ~alive
            self._done.append(
                (self._sources[gone], self._best.select(gone), self._cut.select(gone))
            )
            self._best, self._cut = self._best.select(alive), self._cut.select(alive)
            self._sources, self._limits = self._sources[alive], self._limits[alive]
            totals, parents = totals[alive], parents[alive]
            chosen, each = chosen[alive], each[alive]
        rows, self._previous = parents.reshape(-1), chosen.reshape(-1)
        self._trace.chose(arrayed(rows), arrayed(self._previous), arrayed(each.reshape(-1)))
        self._scores = totals
        self._step += 1
        if not len(self._sources):
            return
        same = not dropped and width == totals.shape[1]
        self._memory, self._state = self._model.take(
            self._memory, self._state, rows, same_sources=same
        )
        if self._looked is not None:
            self._looked = self._looked[rows]
        if self._real is not None and not same:
            self._real = self._real[rows]
        if self._constraint is not None and self._nodes is not None:
            self._nodes = self._constraint.advance(
                self._nodes[arrayed(rows)], arrayed(self._previous)
            )

    def _answers(self) -> list[list[Hypothesis]]:
        order = torch.cat([sources for sources, _, _ in self._done]).cpu().numpy()
        finished = _found(True, [best for _, best, _ in self._done])
        cut = _found(False, [cut for _, _, cut in self._done])
        return self._trace.read(order, finished, cut)


def _found(finished: bool, parts: list[_Best]) -> Found:
    return Found(
        finished,
        arrayed(torch.cat([part.scores for part in parts])),
        arrayed(torch.cat([part.places for part in parts])),
        arrayed(torch.cat([part.log_probs for part in parts])),
    )
