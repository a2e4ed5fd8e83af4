import numpy as np
import pytest
import torch

from regard.seq2seq.architecture import ModelConfig
from regard.seq2seq.description import Description
from regard.seq2seq.export.weights import weights_of
from regard.seq2seq.runtime.alone import Alone
from regard.seq2seq.runtime.model import Model
from regard.seq2seq.runtime.transducer import NumpyTransducer
from regard.seq2seq.search import Ranking, SearchSettings
from regard.seq2seq.train import new_model
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import Vocab

SOURCE = Vocab.of(["abcdefgh"], kind="chars")
TARGET = Vocab.of(["xyzuv"], kind="chars")
TEXTS = ["abcabhg", "b", "hgf", "cadecade", "fffff"]
SIZES = {"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13}
SHAPES = {
    "usual": {},
    "three layers": {"layers": 3},
    "one direction": {"bidirectional": False},
    "one direction, two layers": {"bidirectional": False, "layers": 2},
    "deep": {"d_readout": 3},
    "tied": {"d_readout": 5, "tied": True},
}


def both(shape, *, factor=1.0):
    config = ModelConfig(len(SOURCE), len(TARGET), **SIZES, **SHAPES[shape])
    model = new_model(config, seed=3).eval()
    with torch.no_grad():  # far from uniform
        for index, parameter in enumerate(model.parameters()):
            generator = torch.Generator().manual_seed(index)
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.7)
        model.decoder.attention.v_a.mul_(factor)
    description = Description(config, SOURCE, TARGET, 7, 5)
    other = NumpyTransducer(Model(config, weights_of(model)), description)
    return Transducer(model, description), other


@pytest.fixture
def followed(monkeypatch):
    """How often the search for one source was asked."""
    calls = []
    follow = Alone.follow

    def counted(self, *args, **kwargs):
        calls.append(args)
        return follow(self, *args, **kwargs)

    monkeypatch.setattr(Alone, "follow", counted)
    return calls


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("factor", [1.0, 11.0])
@pytest.mark.parametrize(
    "search",
    [
        SearchSettings(),
        SearchSettings(max_length=2),
        SearchSettings(max_length=0),
        SearchSettings(ranking=Ranking(0.7, 0.3)),
    ],
)
def test_a_source_alone_is_answered_as_the_trained_model_answers_it(
    shape, search, factor, followed
):
    trained, other = both(shape, factor=factor)
    ends = set()
    scores = np.abs(other.model._weights["decoder.attention.v_a"]).sum()
    assert bool(scores > 80) is (factor > 1)  # where exponentials need their maximum
    for text in TEXTS:
        (found,), (wanted,) = (m.predict([text], search=search) for m in (other, trained))
        mine, theirs = found.hypothesis, wanted.hypothesis
        assert mine.ids == theirs.ids
        assert mine.finished is theirs.finished
        ends.add(mine.finished)
        np.testing.assert_allclose(mine.log_probs, theirs.log_probs, atol=1e-4)
        np.testing.assert_allclose(mine.score, theirs.score, atol=1e-4)
        assert mine.weights.shape == theirs.weights.shape
        np.testing.assert_allclose(mine.weights, theirs.weights, atol=factor * 1e-5)
        (bare,) = other.predict([text], search=search, need_weights=False)
        assert bare.hypothesis.weights is None
        assert bare.hypothesis.ids == mine.ids
        assert bare.hypothesis.score == mine.score
    assert len(followed) == 2 * len(TEXTS)
    if search.max_length == 2 and factor == 1.0:
        assert False in ends


def test_several_sources_and_other_searches_go_the_usual_way(followed):
    _, other = both("usual")
    other.predict(["ab", "cd"])
    for how in (
        SearchSettings(beam=3),
        SearchSettings(temperature=0.5, seed=7),
        SearchSettings(min_length=2),
    ):
        other.predict(["ab"], search=how)
    assert not followed
    other.predict(["ab"])
    assert len(followed) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"cell": "lstm"},
        {"decoder_layers": 2},
        {"attention": "general"},
        {"attention": "none"},
        {"attention": "bahdanau-paper"},
    ],
)
def test_other_models_go_the_usual_way(change):
    assert Alone.suits(ModelConfig(17, 19, **SIZES))
    assert not Alone.suits(ModelConfig(17, 19, **{**SIZES, **change}))
    assert not Alone.suits(ModelConfig(17, 4099, **SIZES))
