import itertools
import math

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.search import Constraint, Ranking, Trie, beam_search, greedy
from regard.seq2seq.train import new_model
from regard.seq2seq.vocab import BOS, EOS, FIRST

SYMBOLS = 3  # of the target, so that all its sequences can be counted out
LONGEST = 4
RANKINGS = [
    Ranking(),
    Ranking(length=0.7),
    Ranking(length=3.1),
    Ranking(length="average"),
    Ranking(length="average", coverage=0.3),
    Ranking(length=1.3, coverage=1.9),
]


@pytest.fixture(params=["none", "bahdanau", "general"])
def tiny(request):
    sizes = {"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13, "dropout": 0.0}
    config = ModelConfig(17, FIRST + SYMBOLS, attention=request.param, **sizes)
    model = new_model(config, seed=3).eval()
    with torch.no_grad():  # far from uniform, so that rankings differ
        for parameter in model.parameters():
            parameter.mul_(2.5)
        model.readout.bias[EOS] -= 0.5
    return model


def _log_probs(model, source, ids):
    """Each symbol's log-probability and the attention, by teacher forcing."""
    inputs = torch.tensor([[BOS, *ids]])
    with torch.no_grad():
        scored = model(source, inputs)
    scores = scored.symbol_scores[0].clone()
    scores[:, [0, 1, 3]] = -torch.inf
    each = scores.log_softmax(-1)[torch.arange(len(ids) + 1), torch.tensor([*ids, EOS])]
    return each.double().numpy(), None if scored.weights is None else scored.weights[0].numpy()


def _score(ranking, each, weights):
    """Wu et al. 2016, equation 14, in plain arithmetic."""
    length = len(each)
    divisor = {"none": 1.0, "average": length}.get(ranking.length)
    if divisor is None:
        divisor = (5 + length) ** ranking.length / (5 + 1) ** ranking.length
    score = sum(each) / divisor
    if ranking.coverage:
        for column in weights.T:
            score += ranking.coverage * math.log(min(sum(column), 1.0))
    return score


def _all_ranked(model, source, ranking, targets=None):
    """Every target up to LONGEST, the best first."""
    symbols = range(FIRST, FIRST + SYMBOLS)
    if targets is None:
        targets = [
            ids for n in range(LONGEST + 1) for ids in itertools.product(symbols, repeat=n)
        ]
    scored = []
    for ids in targets:
        each, weights = _log_probs(model, source, ids)
        scored.append((_score(ranking, each, weights), ids, sum(each)))
    return sorted(scored, reverse=True)


@pytest.mark.parametrize("ranking", RANKINGS, ids=str)
def test_a_wide_beam_finds_the_best_of_all_sequences(tiny, ranking):
    if ranking.coverage and not tiny.attends:
        with pytest.raises(InputError, match="coverage"):
            beam_search(tiny, torch.tensor([[5, 6]]), max_length=2, ranking=ranking)
        return
    rows = [[4, 5, 6, 7, 8], [11, 12, 0, 0, 0], [16, 9, 4, 0, 0]]
    lengths = torch.tensor([5, 2, 3])
    found = beam_search(
        tiny,
        torch.tensor(rows),
        lengths,
        max_length=LONGEST,
        beam=SYMBOLS**LONGEST * (SYMBOLS + 1),  # all continuations of the longest
        nbest=13,
        ranking=ranking,
    )
    for row, length, answers in zip(rows, lengths.tolist(), found, strict=True):
        wanted = _all_ranked(tiny, torch.tensor([row[:length]]), ranking)[:13]
        assert [answer.ids for answer in answers] == [ids for _, ids, _ in wanted]
        assert all(answer.finished for answer in answers)
        np.testing.assert_allclose(
            [a.score for a in answers], [s for s, _, _ in wanted], atol=1e-4
        )
        np.testing.assert_allclose(
            [a.log_prob for a in answers], [p for _, _, p in wanted], atol=1e-4
        )


def test_rankings_differ_so_the_comparison_can_fail():
    sizes = {"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13, "dropout": 0.0}
    model = new_model(ModelConfig(17, FIRST + SYMBOLS, **sizes), seed=3).eval()
    source = torch.tensor([[4, 5, 6, 7, 8]])
    orders = {
        tuple(ids for _, ids, _ in _all_ranked(model, source, ranking)[:13])
        for ranking in RANKINGS
    }
    assert len(orders) >= 4


@pytest.mark.parametrize("ranking", RANKINGS[:4], ids=str)
@pytest.mark.parametrize("bias", [-1.0, 0.0, 1.0])
def test_a_beam_of_one_is_the_greedy_search(model, batch, ranking, bias):
    with torch.no_grad():
        model.readout.bias[EOS] += bias
    given = {"max_length": [7, 2, 5], "ranking": ranking}
    one = greedy(model, batch.source, batch.source_lengths, **given)
    found = beam_search(model, batch.source, batch.source_lengths, beam=1, **given)
    for wanted, (answer,) in zip(one, found, strict=True):
        assert (answer.ids, answer.finished) == (wanted.ids, wanted.finished)
        np.testing.assert_allclose(answer.log_probs, wanted.log_probs, atol=1e-5)
        assert answer.score == pytest.approx(wanted.score, abs=1e-5)
        if wanted.weights is None:
            assert answer.weights is None
        else:
            np.testing.assert_allclose(answer.weights, wanted.weights, atol=1e-5)


def test_giving_up_what_cannot_win_changes_no_answer(tiny, monkeypatch):
    source = torch.tensor([[4, 5, 6, 7, 8], [11, 12, 13, 4, 9]])
    for ranking in RANKINGS[:4]:
        given = {"max_length": 11, "beam": 5, "nbest": 3, "ranking": ranking}
        found = beam_search(tiny, source, **given)
        with monkeypatch.context() as patch:
            endless = lambda self, log_prob, longest: torch.full_like(log_prob, 1.0)  # noqa: E731
            patch.setattr(Ranking, "bound", endless)
            wanted = beam_search(tiny, source, **given)
        for one, other in zip(found, wanted, strict=True):
            assert [a.ids for a in one] == [a.ids for a in other]
            np.testing.assert_allclose([a.score for a in one], [a.score for a in other])


def test_a_search_stops_as_soon_as_nothing_can_win(tiny):
    steps = []
    step = tiny.step
    tiny.step = lambda *given: steps.append(1) or step(*given)
    with torch.no_grad():
        tiny.readout.bias[EOS] = 1e4
    beam_search(tiny, torch.tensor([[4, 5, 6]]), max_length=101, beam=3)
    assert len(steps) == 1


def test_every_source_is_answered_as_it_is_alone(model, batch):
    given = {"beam": 3, "nbest": 3, "ranking": Ranking(length=0.6)}
    together = beam_search(
        model, batch.source, batch.source_lengths, max_length=[7, 3, 5], **given
    )
    for row, (t_enc, limit) in enumerate(((5, 7), (2, 3), (1, 5))):
        source = batch.source[row : row + 1, :t_enc]
        alone = beam_search(model, source, max_length=limit, **given)[0]
        assert [a.ids for a in together[row]] == [a.ids for a in alone]
        for one, other in zip(together[row], alone, strict=True):
            np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-4)
            if other.weights is not None:
                assert one.weights.shape == (len(one.ids), t_enc)
                np.testing.assert_allclose(one.weights, other.weights, atol=1e-4)


def test_probabilities_and_weights_are_those_of_the_answer_itself(tiny):
    source = torch.tensor([[4, 5, 6, 7, 8]])
    for answer in beam_search(tiny, source, max_length=7, beam=5, nbest=5)[0]:
        each, weights = _log_probs(tiny, source, answer.ids)
        wanted = each if answer.finished else each[:-1]
        np.testing.assert_allclose(answer.log_probs, wanted, atol=1e-4)
        if weights is not None:
            np.testing.assert_allclose(answer.weights, weights[: len(answer.ids)], atol=1e-4)


def test_answers_without_an_end_are_cut_at_their_limit_and_come_last(model, batch):
    with torch.no_grad():
        model.readout.bias[EOS] = -1e9
    found = beam_search(
        model, batch.source, batch.source_lengths, max_length=[3, 0, 5], beam=4, nbest=4
    )
    assert [[len(a.ids) for a in answers] for answers in found] == [[3] * 4, [0], [5] * 4]
    assert not any(answer.finished for answers in found for answer in answers)
    assert [a.score for a in found[0]] == sorted((a.score for a in found[0]), reverse=True)
    assert len({a.ids for a in found[0]}) == 4


def test_looking_at_the_weights_changes_nothing(tiny):
    source = torch.tensor([[4, 5, 6, 7, 8]])
    found = beam_search(tiny, source, max_length=7, beam=3, nbest=3)[0]
    without = beam_search(tiny, source, max_length=7, beam=3, nbest=3, need_weights=False)[0]
    assert [a.ids for a in found] == [a.ids for a in without]
    assert [a.score for a in found] == [a.score for a in without]
    assert all(a.weights is None for a in without)


def test_listed_targets_are_ranked_as_among_all_others(tiny):
    source = torch.tensor([[4, 5, 6]])
    targets = [(4,), (4, 5), (4, 5, 6, 6), (6, 6, 6), (5,), (6, 4)]
    constraint = Constraint(trie=Trie(targets, FIRST + SYMBOLS))
    found = beam_search(
        tiny, source, max_length=LONGEST, beam=31, nbest=29, constraint=constraint
    )[0]
    wanted = _all_ranked(tiny, source, Ranking(), targets)
    assert [a.ids for a in found] == [ids for _, ids, _ in wanted]
    np.testing.assert_allclose(
        [a.log_prob for a in found], [s for s, _, _ in wanted], atol=1e-4
    )


@pytest.mark.parametrize(("beam", "nbest"), [(0, 1), (3, 4), (3, 0)])
def test_a_beam_that_makes_no_sense_is_refused(model, batch, beam, nbest):
    with pytest.raises(InputError, match="`beam` and `nbest`"):
        beam_search(model, batch.source, max_length=3, beam=beam, nbest=nbest)


def test_no_sources_have_no_answers(model):
    assert beam_search(model, torch.zeros(0, 3, dtype=torch.long), max_length=3) == []


def test_scores_that_are_no_numbers_end_in_an_empty_answer(tiny):
    with torch.no_grad():
        tiny.readout.bias.fill_(torch.nan)
    source = torch.tensor([[4, 5, 6], [7, 8, 9]])
    for answers in beam_search(tiny, source, max_length=5, beam=3, nbest=2):
        assert [(a.ids, a.finished, a.score) for a in answers] == [((), False, -math.inf)]
