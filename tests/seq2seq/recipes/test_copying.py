import pytest
import torch

import regard as rg
from regard.seq2seq.batch import Batch
from regard.seq2seq.recipes.copying import CHANCE, SYMBOLS, CopyBatches, copy_score, settings
from regard.seq2seq.search import Hypothesis
from regard.seq2seq.train import new_model
from regard.seq2seq.vocab import BOS, EOS


def test_a_batch_asks_for_its_own_source():
    batch = CopyBatches(7, 7, batch=5).at(3)
    assert isinstance(batch, Batch)
    assert batch.source.shape == batch.inputs.shape == batch.targets.shape == (5, 8)
    assert batch.source_lengths is None
    assert torch.equal(batch.source, batch.targets)
    assert (batch.inputs[:, 0] == BOS).all()
    assert torch.equal(batch.inputs[:, 1:], batch.source[:, :-1])
    assert (batch.targets[:, -1] == EOS).all()


def test_a_step_can_be_asked_for_twice_and_steps_and_seeds_differ():
    batches = CopyBatches(1, 40, batch=5, seed=3)
    assert torch.equal(batches.at(11).source, batches.at(11).source)
    lengths = [batches.at(step).source.shape[1] - 1 for step in range(400)]
    assert min(lengths) == 1
    assert max(lengths) == 40
    again = [CopyBatches(1, 40, batch=5, seed=4).at(s).source.shape[1] - 1 for s in range(400)]
    assert lengths != again


def test_every_symbol_is_equally_likely():
    batch = CopyBatches(80, 80, batch=500).at(0)
    counts = torch.bincount(batch.source[:, :-1].flatten())[4:]
    assert len(counts) == SYMBOLS
    assert (counts / counts.sum() - CHANCE).abs().max() < 0.01


def test_the_longest_length_grows_over_the_ramp():
    batches = CopyBatches(1, 80, batch=2, ramp=100)
    for step in (0, 24, 49):
        assert batches.at(step).source.shape[1] - 1 <= 80 * (step + 1) / 100 + 1
    assert max(batches.at(step).source.shape[1] for step in range(100, 400)) == 81


@pytest.mark.parametrize(
    "changed", [{"shortest": 0}, {"longest": 2}, {"batch": 0}, {"ramp": -1}], ids=str
)
def test_impossible_batches_are_refused_by_name(changed):
    given = {"shortest": 3, "longest": 5, "batch": 7, "ramp": 0} | changed
    shortest, longest = given.pop("shortest"), given.pop("longest")
    with pytest.raises(rg.InputError, match=f"`{next(iter(changed))}` is refused"):
        CopyBatches(shortest, longest, **given)


def _answering(monkeypatch, answer):
    """Let the search return what `answer` makes of each source row."""

    def search(model, source, **options):
        return [answer(row[:-1].tolist()) for row in source]

    monkeypatch.setattr("regard.seq2seq.recipes.copying.greedy", search)


def _hypothesis(ids, finished=True):
    return Hypothesis(tuple(ids), (0.0,) * len(ids), finished, None, 0.0)


def test_a_perfect_copy_scores_one(monkeypatch):
    _answering(monkeypatch, _hypothesis)
    score = copy_score(None, 7, count=13)
    assert (score.length, score.token_accuracy, score.exact_match) == (7, 1.0, 1.0)


def test_what_follows_an_early_end_counts_as_wrong(monkeypatch):
    _answering(monkeypatch, lambda ids: _hypothesis(ids[:3]))
    score = copy_score(None, 5, count=13)
    assert score.token_accuracy == pytest.approx(3 / 5)
    assert score.exact_match == 0


def test_a_copy_that_does_not_end_is_no_exact_match(monkeypatch):
    _answering(monkeypatch, lambda ids: _hypothesis(ids, finished=False))
    score = copy_score(None, 5, count=13)
    assert (score.token_accuracy, score.exact_match) == (1.0, 0.0)


def test_an_untrained_model_copies_by_chance_only():
    model = new_model(settings("dot", steps=10)[0], seed=0)
    assert copy_score(model, 20, count=200).token_accuracy < 3 * CHANCE


@pytest.mark.parametrize("attention", ["none", "bahdanau", "dot", "general", "concat"])
def test_every_kind_has_the_same_width_data_and_steps(attention):
    model, batches, training = settings(attention, steps=50, longest=11, seed=2)
    base, same_batches, same_training = settings("none", steps=50, longest=11, seed=2)
    assert (model.d_in, model.d_h, model.d_s) == (base.d_in, base.d_h, base.d_s)
    assert training == same_training
    assert torch.equal(batches.at(7).source, same_batches.at(7).source)
