import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.search import Constraint, Trie, beam_search, greedy
from regard.seq2seq.vocab import BOS, EOS, FIRST, PAD, UNK

SYMBOLS = 19


def test_a_trie_knows_what_may_follow_each_prefix():
    trie = Trie([(5, 7), (5, 7, 11), (13,), ()], SYMBOLS)
    nodes = np.zeros(3, dtype=np.int64)
    assert trie.longest == 3

    def may(forbidden):
        return [np.flatnonzero(~row).tolist() for row in forbidden]

    assert may(trie.forbidden(nodes)) == [[EOS, 5, 13]] * 3
    nodes = trie.advance(nodes, np.array([5, 13, 5]))
    assert may(trie.forbidden(nodes)) == [[7], [EOS], [7]]
    nodes = trie.advance(nodes, np.array([7, EOS, 7]))
    assert may(trie.forbidden(nodes))[::2] == [[EOS, 11]] * 2
    nodes = trie.advance(nodes, np.array([11, 5, 11]))
    assert may(trie.forbidden(nodes))[::2] == [[EOS]] * 2


@pytest.mark.parametrize("targets", [[], [(PAD,)], [(BOS, 5)], [(5, UNK)], [(SYMBOLS,)]])
def test_targets_that_no_answer_can_be_are_refused(targets):
    with pytest.raises(InputError, match=r"Trie\(\)"):
        Trie(targets, SYMBOLS)


def _allowed(*symbols):
    mask = torch.zeros(SYMBOLS, dtype=torch.bool)
    mask[list(symbols)] = True
    return mask


def test_only_allowed_symbols_are_answered(model, batch):
    constraint = Constraint(allowed=_allowed(7, 11))
    with torch.no_grad():
        model.readout.bias[EOS] = -3.0
    given = {"max_length": 6, "constraint": constraint}
    found = [[h] for h in greedy(model, batch.source, batch.source_lengths, **given)]
    found += beam_search(model, batch.source, batch.source_lengths, beam=3, nbest=3, **given)
    used = {symbol for answers in found for answer in answers for symbol in answer.ids}
    assert used == {7, 11}
    free = greedy(model, batch.source, batch.source_lengths, max_length=6)
    assert not {symbol for h in free for symbol in h.ids} <= {7, 11}


def test_probabilities_under_a_constraint_are_those_without_it(model, batch):
    constraint = Constraint(allowed=_allowed(7, 11))
    source = batch.source[:1]
    answer = greedy(model, source, max_length=6, constraint=constraint)[0]
    scores = model(source, torch.tensor([[BOS, *answer.ids]])).symbol_scores[0]
    scores[:, [PAD, BOS, UNK]] = -torch.inf
    log_probs = scores.log_softmax(-1)
    wanted = [
        log_probs[i, symbol].item()
        for i, symbol in enumerate([*answer.ids, EOS][: len(answer.log_probs)])
    ]
    np.testing.assert_allclose(answer.log_probs, wanted, atol=1e-4)


def test_a_target_has_at_least_the_shortest_length(model, batch):
    with torch.no_grad():
        model.readout.bias[EOS] = 7.0
    given = {"max_length": 5, "constraint": Constraint(shortest=3)}
    one = greedy(model, batch.source, batch.source_lengths, **given)
    assert [len(h.ids) for h in one] == [3, 3, 3]
    for answers in beam_search(
        model, batch.source, batch.source_lengths, beam=3, nbest=2, **given
    ):
        assert all(len(answer.ids) >= 3 and answer.finished for answer in answers)


def test_a_beam_of_one_is_the_greedy_search_under_a_constraint(model, batch):
    targets = [(5, 7), (5, 7, 11), (13,), (13, 4, 4, 4), (18, 9)]
    constraint = Constraint(trie=Trie(targets, SYMBOLS), allowed=_allowed(*range(FIRST, 19)))
    given = {"max_length": 4, "constraint": constraint}
    one = greedy(model, batch.source, batch.source_lengths, **given)
    assert all(h.ids in targets and h.finished for h in one)
    found = beam_search(model, batch.source, batch.source_lengths, beam=1, **given)
    assert [h.ids for h in one] == [answers[0].ids for answers in found]


def test_what_allows_nothing_is_refused():
    with pytest.raises(InputError, match="`allowed`"):
        Constraint(allowed=_allowed(EOS, UNK))
    with pytest.raises(InputError, match="`shortest`"):
        Constraint(shortest=-1)


def test_a_limit_below_the_shortest_length_is_refused(model, batch):
    with pytest.raises(InputError, match="`max_length`"):
        greedy(model, batch.source, max_length=2, constraint=Constraint(shortest=3))
