"""What a model would have written with other weights, against a plain recomputation."""

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.counterfactuals import changed_steps, counterfactuals
from regard.seq2seq.ensemble import Ensemble

SOURCE, TARGET = [4, 5, 6, 7, 8], [5, 4, 7]


def distributions(model, weights_of_step):
    """Bahdanau's decoder written out: each step's distribution under other rows of weights."""
    cell, attention = model.decoder.cell, model.decoder.attention
    states, initial = model.encoder(torch.tensor([SOURCE]))
    found, own = [], []
    hidden = initial
    for step, symbol in enumerate([1, *TARGET][: len(TARGET)]):
        scores = torch.tanh(hidden @ attention.W_a.T + states[0] @ attention.U_a.T) @ (
            attention.v_a
        )
        weights = torch.softmax(scores, -1)
        own.append(weights)
        embedded = model.embedding(torch.tensor([symbol]))

        def written(row, hidden=hidden, embedded=embedded):
            context = (row @ states[0])[None]
            after = cell(torch.cat([embedded, context], -1), hidden)
            read = model.readout(torch.cat([after, context, embedded], -1))[0].double()
            read[[0, 1, 3]] = -torch.inf
            return after, torch.softmax(read, -1)

        hidden, _ = written(weights)
        found.append([written(row)[1] for row in weights_of_step(step, weights)])
    return own, found


def test_each_change_moves_the_distribution_as_the_equations_say(lively):
    model = lively().model
    changed = changed_steps(model, SOURCE, TARGET, shuffles=3, seed=11)

    def rows(step, weights):
        even = torch.full_like(weights, 1 / 5)
        without = []
        for i in range(5):
            left = weights.clone()
            left[i] = 0
            without.append(left / left.sum())
        return [weights, even, *without]

    with torch.no_grad():
        own, found = distributions(model, rows)
    np.testing.assert_allclose(changed.weights, torch.stack(own), atol=1e-6)
    for step, (first, *others) in enumerate(found):
        moved = [float((other - first).abs().sum() / 2) for other in others]
        np.testing.assert_allclose(changed.uniform[1][step, 0], moved[0], atol=1e-5)
        np.testing.assert_allclose(changed.ablated[1][step], moved[1:], atol=1e-5)
        assert changed.own[step] == int(first.argmax())
        assert changed.ablated[0][step].tolist() == [int(o.argmax()) for o in others[1:]]
    assert changed.shuffled[1].shape == (3, 3)
    assert (changed.shuffled[1] > 0).any()


def test_the_same_seed_shuffles_the_same_and_another_does_not(lively):
    model = lively("general").model
    one, again, other = (
        changed_steps(model, SOURCE, TARGET, seed=seed).shuffled[1] for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, again)
    assert (one != other).any()


def test_a_record_keeps_the_commonest_word_and_what_each_position_does(lively):
    changed = changed_steps(lively().model, SOURCE, TARGET, end=True)
    found = counterfactuals(changed, list("#_$?KLMN"))
    assert set(found) == {"permute", "uniform", "ablate"}
    strongest = changed.weights.argmax(1)
    positions = found["ablate"].positions
    assert positions.difference.shape == (4, 5)
    for step, place in enumerate(strongest):
        assert found["ablate"].target[step] == positions.target[step][place]
        assert found["ablate"].difference[step] == positions.difference[step, place]
    assert found["permute"].difference == pytest.approx(changed.shuffled[1].mean(1))
    assert found["uniform"].unaltered == tuple("#_$?KLMN"[i] for i in changed.own)
    assert "shuffled (10 times" in found["permute"].how


def test_an_ensemble_is_changed_in_all_members_and_one_without_attention_stays(lively):
    one, none = lively(seed=3).model, lively("none", seed=5).model
    for model in (one, none):  # so that nothing is lost where they may not be answered
        with torch.no_grad():
            model.readout.bias[[0, 1, 3]] = -1e4
    alone = changed_steps(one, SOURCE, TARGET).uniform[1]
    both = changed_steps(Ensemble([one, none]).eval(), SOURCE, TARGET)
    # Half of the mean's probability does not move.
    np.testing.assert_allclose(both.uniform[1], alone / 2, atol=1e-6)
    np.testing.assert_allclose(both.weights.sum(1), 1, atol=1e-6)
    assert (alone > 1e-3).any()


def test_one_position_alone_can_be_ablated_but_not_permuted(lively):
    changed = changed_steps(lively().model, [4], TARGET)
    assert (changed.shuffled[1] < 1e-5).all()
    assert (changed.uniform[1] < 1e-5).all()
    assert (changed.ablated[1] > 1e-3).all()


def test_small_parts_give_the_same(lively, monkeypatch):
    model = lively("location").model
    whole = changed_steps(model, SOURCE, TARGET)
    monkeypatch.setattr("regard.seq2seq.counterfactuals._MOST", 100)
    parts = changed_steps(model, SOURCE, TARGET)
    np.testing.assert_allclose(whole.ablated[1], parts.ablated[1], atol=1e-6)


def test_what_has_no_weights_to_change_is_refused(lively):
    with pytest.raises(InputError, match="no weights to change"):
        changed_steps(lively("none").model, SOURCE, TARGET)
    with pytest.raises(InputError, match="`shuffles` is refused"):
        changed_steps(lively().model, SOURCE, TARGET, shuffles=0)
