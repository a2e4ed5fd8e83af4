import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.search import greedy
from regard.seq2seq.train import new_model
from regard.seq2seq.vocab import BOS, EOS, FIRST


def test_every_symbol_is_the_likeliest_after_those_before_it(model, batch):
    found = greedy(model, batch.source, batch.source_lengths, max_length=7)
    for row, hypothesis in enumerate(found):
        # Teacher forcing on the answer itself is an independent path to its probabilities.
        inputs = torch.tensor([[BOS, *hypothesis.ids]])
        length = int((batch.source[row] != 0).sum())
        scores = model(batch.source[row : row + 1, :length], inputs).symbol_scores[0]
        scores[:, [0, 1, 3]] = -torch.inf
        log_probs = scores.log_softmax(-1)
        answer = [*hypothesis.ids, EOS][: len(hypothesis.log_probs)]
        assert log_probs.argmax(-1)[: len(answer)].tolist() == answer
        wanted = [log_probs[i, symbol].item() for i, symbol in enumerate(answer)]
        np.testing.assert_allclose(hypothesis.log_probs, wanted, atol=1e-4)
        assert hypothesis.log_prob == pytest.approx(sum(wanted), abs=1e-3)


def test_weights_have_a_row_a_symbol_and_a_column_a_source_symbol(model, batch):
    for hypothesis, t_enc in zip(
        greedy(model, batch.source, batch.source_lengths, max_length=7), (5, 2, 1), strict=True
    ):
        if model.attends:
            assert hypothesis.weights.shape == (len(hypothesis.ids), t_enc)
            np.testing.assert_allclose(hypothesis.weights.sum(-1), 1, atol=1e-5)
        else:
            assert hypothesis.weights is None


def test_looking_at_the_weights_changes_nothing(model, batch):
    with_weights = greedy(model, batch.source, batch.source_lengths, max_length=7)
    without = greedy(
        model, batch.source, batch.source_lengths, max_length=7, need_weights=False
    )
    assert [h.ids for h in with_weights] == [h.ids for h in without]
    assert [h.log_probs for h in with_weights] == [h.log_probs for h in without]
    assert all(h.weights is None for h in without)


def _bias_end(model, value: float) -> None:
    with torch.no_grad():
        model.readout.bias[EOS] = value


def test_a_target_that_does_not_end_is_cut_at_its_own_limit(model, batch):
    _bias_end(model, -1e9)
    found = greedy(model, batch.source, batch.source_lengths, max_length=[3, 0, 5])
    assert [len(h.ids) for h in found] == [3, 0, 5]
    assert [len(h.log_probs) for h in found] == [3, 0, 5]
    assert not any(h.finished for h in found)
    assert all(symbol >= FIRST for h in found for symbol in h.ids)


def test_a_target_may_be_empty(model, batch):
    _bias_end(model, 1e9)
    found = greedy(model, batch.source, batch.source_lengths, max_length=5)
    assert [h.ids for h in found] == [(), (), ()]
    assert all(h.finished and len(h.log_probs) == 1 for h in found)


def test_the_limit_leaves_room_for_the_end(model, batch):
    _bias_end(model, 1e9)
    assert all(
        h.finished for h in greedy(model, batch.source, batch.source_lengths, max_length=0)
    )


def test_dropout_is_off_and_the_mode_comes_back(batch):
    sizes = ModelConfig(17, 19, d_in=5, d_hidden=7, d_s=11, d_attn=13, dropout=0.9)
    model = new_model(sizes, seed=3).train()
    one, two = (
        greedy(model, batch.source, batch.source_lengths, max_length=7)[0].log_probs
        for _ in range(2)
    )
    assert one == two
    assert model.training
    greedy(model.eval(), batch.source, max_length=1)
    assert not model.training


def test_an_example_is_answered_as_it_is_alone(model, batch):
    together = greedy(model, batch.source, batch.source_lengths, max_length=7)
    for row, t_enc in enumerate((5, 2, 1)):
        alone = greedy(model, batch.source[row : row + 1, :t_enc], max_length=7)[0]
        assert together[row].ids == alone.ids
        np.testing.assert_allclose(together[row].log_probs, alone.log_probs, atol=1e-4)


@pytest.mark.parametrize("limit", [-1, [3, 3], [3, -1, 3]])
def test_a_limit_that_does_not_fit_is_refused(model, batch, limit):
    with pytest.raises(InputError, match="`max_length`"):
        greedy(model, batch.source, batch.source_lengths, max_length=limit)
