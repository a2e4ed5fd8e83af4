import numpy as np
import pytest
import torch

import regard.seq2seq.swift as module
from regard.seq2seq.ensemble import Ensemble
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.search import beam_search, greedy
from regard.seq2seq.swift import swift
from regard.seq2seq.train import new_model

SIZES = {"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13, "dropout": 0.3}
KINDS = [
    {},
    {"cell": "lstm"},
    {"d_readout": 17},
    {"d_readout": 5, "tied": True},
    {"cell": "lstm", "d_readout": 5, "tied": True},
]


def _same(one, other):
    assert [h.ids for h in one] == [h.ids for h in other]
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(mine.log_probs, theirs.log_probs, atol=1e-5)
        if theirs.weights is not None:
            np.testing.assert_allclose(mine.weights, theirs.weights, atol=1e-5)


@pytest.mark.parametrize("plain", [0, 1 << 15])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_searches_find_what_they_find_with_the_model_itself(kind, plain, batch, monkeypatch):
    monkeypatch.setattr(module, "_PLAIN", plain)  # both ways to attend
    model = new_model(ModelConfig(17, 19, **SIZES, **kind), seed=3).eval()
    with torch.no_grad():  # far from uniform
        for parameter in model.parameters():
            parameter.mul_(2.5)
    quick = swift(model)
    assert quick is not model
    given = {"max_length": [11, 7, 5]}
    _same(
        greedy(quick, batch.source, batch.source_lengths, **given),
        greedy(model, batch.source, batch.source_lengths, **given),
    )
    beams = [
        beam_search(each, batch.source, batch.source_lengths, beam=3, nbest=3, **given)
        for each in (quick, model)
    ]
    for one, other in zip(*beams, strict=True):
        _same(one, other)


def test_dropout_is_off_and_the_mode_comes_back(batch):
    model = new_model(ModelConfig(17, 19, **SIZES), seed=3).train()
    one, two = (greedy(swift(model), batch.source, max_length=7)[0].log_probs for _ in range(2))
    assert one == two
    assert model.training


def test_what_has_no_swift_form_is_left_as_it_is(model):
    if model.config.attention == "bahdanau":
        assert swift(model) is not model
    else:
        assert swift(model) is model
    large = new_model(ModelConfig(17, 2053, **SIZES), seed=3)
    assert swift(large) is large


def test_members_of_an_ensemble_are_made_swift(batch):
    members = [
        new_model(ModelConfig(17, 19, attention=attention, **SIZES), seed=seed)
        for seed, attention in enumerate(("bahdanau", "general", "none"))
    ]
    ensemble = Ensemble(members).eval()
    quick = swift(ensemble)
    assert quick is not ensemble
    given = {"max_length": [11, 7, 5]}
    _same(
        greedy(quick, batch.source, batch.source_lengths, **given),
        greedy(ensemble, batch.source, batch.source_lengths, **given),
    )
