import collections

import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.search import Constraint, greedy, sample
from regard.seq2seq.train import new_model
from regard.seq2seq.vocab import BOS, EOS, FIRST


def test_symbols_are_drawn_with_the_models_probabilities():
    sizes = {"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13, "dropout": 0.0}
    model = new_model(ModelConfig(17, FIRST + 3, **sizes), seed=3).eval()
    source = torch.tensor([[5, 6]])
    with torch.no_grad():
        scores = model(source, torch.tensor([[BOS]])).symbol_scores[0, 0]
    scores[[0, 1, 3]] = -torch.inf
    count = 4001
    for temperature in (1.0, 0.4):
        shares = (scores / temperature).softmax(-1)
        found = sample(model, source.expand(count, 2), max_length=1, temperature=temperature)
        drawn = collections.Counter(h.ids[0] if h.ids else EOS for h in found)
        for symbol in (EOS, FIRST, FIRST + 1, FIRST + 2):
            share = shares[symbol].item()
            # Five standard deviations: one in a million for another seed.
            error = 5 * (share * (1 - share) / count) ** 0.5
            assert drawn[symbol] / count == pytest.approx(share, abs=error)


def test_what_is_drawn_depends_on_seed_and_number_not_on_the_batch(model, batch):
    given = {"max_length": 7, "seed": 11}
    together = sample(model, batch.source, batch.source_lengths, **given)
    for row, t_enc in enumerate((5, 2, 1)):
        alone = sample(model, batch.source[row : row + 1, :t_enc], numbers=[row], **given)
        assert alone[0].ids == together[row].ids
    other = sample(model, batch.source, batch.source_lengths, max_length=7, seed=12)
    assert [h.ids for h in other] != [h.ids for h in together]


def test_a_low_temperature_is_the_greedy_search(model, batch):
    cold = sample(model, batch.source, batch.source_lengths, max_length=7, temperature=1e-4)
    wanted = greedy(model, batch.source, batch.source_lengths, max_length=7)
    assert [h.ids for h in cold] == [h.ids for h in wanted]


def test_what_is_forbidden_is_never_drawn(model, batch):
    allowed = torch.zeros(19, dtype=torch.bool)
    allowed[[7, 11]] = True
    source = batch.source[:1].expand(53, -1)
    found = sample(
        model, source, max_length=9, constraint=Constraint(allowed=allowed), temperature=3.0
    )
    assert {symbol for h in found for symbol in h.ids} == {7, 11}


@pytest.mark.parametrize(
    "given", [{"temperature": 0.0}, {"seed": -1}, {"numbers": [0]}, {"numbers": [-1, 0, 1]}]
)
def test_what_makes_no_sense_is_refused(model, batch, given):
    with pytest.raises(InputError, match=r"sample\(\)"):
        sample(model, batch.source, batch.source_lengths, max_length=3, **given)
