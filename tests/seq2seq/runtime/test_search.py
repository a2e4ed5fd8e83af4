import numpy as np
import pytest
import torch

import regard.seq2seq.runtime.transducer as module
from regard.seq2seq.architecture import ModelConfig
from regard.seq2seq.description import Description
from regard.seq2seq.export.weights import weights_of
from regard.seq2seq.runtime.model import Model
from regard.seq2seq.runtime.transducer import NumpyTransducer
from regard.seq2seq.search import Constraint, Ranking, SearchSettings
from regard.seq2seq.search import wanted as constrained
from regard.seq2seq.train import new_model
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import Vocab

TEXTS = ["abcab", "ba", "c", "ccc", "bacabca", "ab"]
SOURCE = Vocab.of(["abc"], kind="chars")
TARGET = Vocab.of(["xyzuv"], kind="chars")
SETTINGS = {
    "greedy": SearchSettings(),
    "greedy, penalties": SearchSettings(ranking=Ranking(0.7, 0.3)),
    "beam": SearchSettings(beam=5, nbest=5),
    "wide beam": SearchSettings(beam=31, nbest=29),
    "beam, average": SearchSettings(beam=3, nbest=2, ranking=Ranking("average")),
    "beam, penalties": SearchSettings(beam=4, nbest=3, ranking=Ranking(0.7, 0.3)),
    "beam, short": SearchSettings(beam=3, nbest=3, max_length=2),
    "beam, long": SearchSettings(beam=3, nbest=3, min_length=4),
    "drawn": SearchSettings(temperature=0.7, nbest=3, seed=5),
}


@pytest.fixture(scope="module", params=["bahdanau", "general", "coverage"])
def both(request):
    sizes = ModelConfig(
        len(SOURCE),
        len(TARGET),
        attention=request.param,
        input_feeding=True if request.param == "general" else None,
        d_in=5,
        d_hidden=7,
        d_s=11,
        d_attn=13,
    )
    model = new_model(sizes, seed=3).eval()
    with torch.no_grad():  # far from uniform
        for index, parameter in enumerate(model.parameters()):
            generator = torch.Generator().manual_seed(index)
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.7)
    description = Description(sizes, SOURCE, TARGET, 7, 5)
    other = NumpyTransducer(Model(sizes, weights_of(model)), description)
    return Transducer(model, description), other


def same(found, expected):
    assert [p.source for p in found] == [p.source for p in expected]
    for one, other in zip(found, expected, strict=True):
        assert [a.target for a in one.answers] == [a.target for a in other.answers]
        for answer, wanted in zip(one.answers, other.answers, strict=True):
            mine, theirs = answer.hypothesis, wanted.hypothesis
            assert mine.finished is theirs.finished
            np.testing.assert_allclose(mine.log_probs, theirs.log_probs, atol=1e-5)
            np.testing.assert_allclose(mine.score, theirs.score, atol=1e-4)
            np.testing.assert_allclose(mine.weights, theirs.weights, atol=1e-5)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_search_finds_what_that_of_the_trained_model_finds(both, name):
    trained, other = both
    given = {"search": SETTINGS[name], "batch_tokens": 40}
    expected = trained.predict(TEXTS, **given)
    assert len({a.target for p in expected for a in p.answers}) > 1
    same(other.predict(TEXTS, **given), expected)


def test_weights_that_are_too_many_to_keep_are_computed_again(both, monkeypatch):
    trained, other = both
    given = {"search": SETTINGS["beam, short"]}
    wanted = trained.predict(TEXTS, **given)
    asked = []
    again = module.look_again
    monkeypatch.setattr(module, "look_again", lambda *a: asked.append(1) or again(*a))
    monkeypatch.setattr(module, "_KEPT_WEIGHTS", 11)
    same(other.predict(TEXTS, **given), wanted)
    assert asked


@pytest.mark.parametrize("beam", [1, 3])
def test_constraints_hold_as_with_the_trained_model(both, beam):
    trained, other = both
    for constraint in (
        constrained(TARGET, allow=["xz"]).constraint,
        constrained(TARGET, lexicon=["xyz", "x", "vvu", "uy", "xyyx"]).constraint,
        Constraint(shortest=4),
    ):
        given = {"search": SearchSettings(beam=beam, nbest=beam), "constraint": constraint}
        same(other.predict(TEXTS, **given), trained.predict(TEXTS, **given))


def test_unknown_symbols_are_copied_by_where_the_model_looks(both):
    trained, other = both
    found = other.predict(["aQb", "cc"], unknown="copy")
    same(found, trained.predict(["aQb", "cc"], unknown="copy"))
    assert found[0].unknown == ("Q",)


def test_weights_are_only_kept_where_they_are_asked_for(both):
    _, other = both
    for beam in (1, 3):
        found = other.predict(["ab"], search=SearchSettings(beam=beam), need_weights=False)
        assert found[0].hypothesis.weights is None
