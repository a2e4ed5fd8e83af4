import numpy as np
import pytest
import torch

from regard.seq2seq.architecture import ModelConfig
from regard.seq2seq.batch import collate_sources
from regard.seq2seq.export.weights import weights_of
from regard.seq2seq.runtime.model import Model
from regard.seq2seq.runtime.transducer import padded
from regard.seq2seq.train import new_model

SOURCES = [[4, 5, 6, 7, 8], [11, 12], [16], [9, 4, 4]]

EVERY = {
    "none": {},
    "none, LSTM, two layers, one direction": {
        "attention": "none",
        "cell": "lstm",
        "decoder_layers": 2,
        "layers": 2,
        "bidirectional": False,
    },
    "bahdanau": {},
    "bahdanau, LSTM, three layers": {
        "attention": "bahdanau",
        "cell": "lstm",
        "decoder_layers": 3,
    },
    "bahdanau, readout": {"attention": "bahdanau", "d_readout": 3, "layers": 3},
    "bahdanau, tied": {"attention": "bahdanau", "d_readout": 5, "tied": True},
    "dot": {"d_s": 14},
    "general": {"cell": "lstm"},
    "concat": {"decoder_layers": 2},
    "general, fed": {"attention": "general", "input_feeding": True},
    "dot, fed, LSTM, two layers": {
        "attention": "dot",
        "d_s": 14,
        "input_feeding": True,
        "cell": "lstm",
        "decoder_layers": 2,
    },
    "local-m": {"reach": 1.0},
    "local-p": {"reach": 2.0, "score": "concat", "cell": "lstm"},
    "coverage": {"decoder_layers": 2},
    "location": {"filters": 3, "filter_width": 5, "cell": "lstm"},
    "monotonic": {"decoder_layers": 2, "cell": "lstm"},
    "bahdanau-paper": {},
}


def config(name: str) -> ModelConfig:
    sizes = {"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13, "dropout": 0.1}
    return ModelConfig(17, 19, **{"attention": name, **sizes, **EVERY[name]})


@pytest.mark.parametrize("name", EVERY)
def test_every_step_is_that_of_the_trained_model(name):
    model = new_model(config(name), seed=3).eval()
    with torch.no_grad():  # fresh biases are often zero, and some weights small
        for index, parameter in enumerate(model.parameters()):
            generator = torch.Generator().manual_seed(index)
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.3)
    other = Model(model.config, weights_of(model))
    assert other.attends is model.attends
    source, lengths = collate_sources(SOURCES)
    with torch.no_grad():
        memory, state = model.start(source, lengths)
        mine, my_state = other.start(*padded(SOURCES))
        np.testing.assert_allclose(mine.value, memory.value, atol=1e-5)
        for step in range(7):
            previous = torch.tensor([1, 4, 18, 9]) if step else torch.ones(4, dtype=torch.long)
            scores, state, weights = model.step(previous, memory, state)
            found, my_state, looked = other.step(previous.numpy(), mine, my_state)
            np.testing.assert_allclose(found, scores, atol=1e-5)
            np.testing.assert_allclose(my_state.hidden, state.hidden, atol=1e-5)
            assert (looked is None) is (weights is None)
            if weights is not None:
                np.testing.assert_allclose(looked, weights, atol=1e-5)


@pytest.mark.parametrize(
    "name", ["bahdanau", "general, fed", "coverage", "local-p", "location"]
)
def test_rows_that_read_one_source_do_as_if_each_had_its_own(name):
    model = Model(config(name), weights_of(new_model(config(name), seed=3)))
    memory, state = model.start(*padded(SOURCES))
    rows = np.repeat(np.arange(4), 3)
    state = state.take(rows)
    alone, own = memory.take(rows), state
    for _ in range(3):
        previous = np.arange(4, 16)
        scores, state, weights = model.step(previous, memory, state)
        wanted, own, looked = model.step(previous, alone, own)
        np.testing.assert_allclose(scores, wanted, atol=1e-6)
        np.testing.assert_allclose(weights, looked, atol=1e-6)
    assert len(np.unique(scores.round(5), axis=0)) == 12


def test_padding_changes_nothing():
    name = "bahdanau, LSTM, three layers"
    model = Model(config(name), weights_of(new_model(config(name), seed=3)))
    together, _ = model.start(*padded(SOURCES))
    for row, ids in enumerate(SOURCES):
        alone, _ = model.start(*padded([ids]))
        np.testing.assert_allclose(together.value[row, : len(ids)], alone.value[0], atol=1e-6)
        assert not together.value[row, len(ids) :].any()
