import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.architecture import ModelConfig
from regard.seq2seq.description import Description
from regard.seq2seq.ensemble import Ensemble
from regard.seq2seq.export.agreement import agreement, made_up, require_agreement
from regard.seq2seq.export.export import export_model
from regard.seq2seq.export.weights import weights_of
from regard.seq2seq.runtime.model import Model
from regard.seq2seq.runtime.transducer import NumpyTransducer
from regard.seq2seq.search import SearchSettings
from regard.seq2seq.train import new_model
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import UNK, Vocab

SOURCE = Vocab.of(["abcdefgh"], kind="chars")
TARGET = Vocab.of(["xyzuv"], kind="chars")
SIZES = ModelConfig(len(SOURCE), len(TARGET), d_in=5, d_hidden=7, d_s=11, d_attn=13)
DESCRIPTION = Description(SIZES, SOURCE, TARGET, 7, 5)


@pytest.fixture
def trained():
    model = new_model(SIZES, seed=3).eval()
    with torch.no_grad():
        for index, parameter in enumerate(model.parameters()):
            generator = torch.Generator().manual_seed(index)
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.5)
    return Transducer(model, DESCRIPTION)


def _changed(trained, name, by):
    weights = weights_of(trained.model)
    weights[name] = weights[name] + np.float32(by)
    return NumpyTransducer(Model(SIZES, weights), DESCRIPTION)


def test_made_up_sources_are_as_long_as_those_of_the_training():
    found = made_up(DESCRIPTION, 200)
    assert {len(ids) for ids in found} == set(range(1, 8))
    symbols = {index for ids in found for index in ids}
    assert symbols == {*range(UNK, len(SOURCE))}


def test_a_weight_that_is_off_is_found(trained):
    sources = made_up(DESCRIPTION, 67)
    found = agreement(
        trained, _changed(trained, "readout.bias", [0, 0, 3e-3] + [0] * 6), sources
    )
    assert 5e-4 < found.difference < 1e-2
    with pytest.raises(InputError, match="does not agree"):
        require_agreement("m", found)
    found = agreement(
        trained, _changed(trained, "encoder.gru.weight_hh_l0_reverse", 0.5), sources
    )
    assert found.same < found.sources


def test_weights_that_are_no_numbers_are_no_agreement(trained):
    with np.errstate(all="ignore"):
        found = agreement(
            trained, _changed(trained, "readout.bias", np.nan), made_up(DESCRIPTION, 11)
        )
    with pytest.raises(InputError, match="does not agree"):
        require_agreement("m", found)


def test_an_exact_export_agrees_in_every_step(trained):
    found = export_model(trained, "m").agreement
    assert found.same == found.sources == 256
    assert found.steps > 256
    assert 0 < found.difference < 1e-5
    assert found.probability_difference < 1e-5


def test_an_ensemble_is_exported_whole(trained, tmp_path):
    other = ModelConfig(len(SOURCE), len(TARGET), "none", d_in=3, d_hidden=5, d_s=7)
    both = Transducer(Ensemble([trained.model, new_model(other, seed=5).eval()]), DESCRIPTION)
    found = export_model(both, "m")
    assert found.members == 2
    assert found.agreement.same == found.agreement.sources
    path = tmp_path / "m.npz"
    path.write_bytes(found.files["model.npz"])
    read = NumpyTransducer.load(path)
    assert read.attends
    for how in (SearchSettings(), SearchSettings(beam=3, nbest=3)):
        one, two = (m.predict(["abc", "h"], search=how) for m in (read, both))
        for mine, theirs in zip(one, two, strict=True):
            for a, b in zip(mine.answers, theirs.answers, strict=True):
                assert a.target == b.target
                np.testing.assert_allclose(a.hypothesis.score, b.hypothesis.score, atol=1e-4)
                np.testing.assert_allclose(
                    a.hypothesis.weights, b.hypothesis.weights, atol=1e-5
                )


def test_what_cannot_be_exported_is_refused(trained):
    both = Transducer(Ensemble([trained.model, trained.model]), DESCRIPTION)
    with pytest.raises(InputError, match="ensemble of 2"):
        export_model(both, "m", to="onnx")
    with pytest.raises(InputError, match="`to`"):
        export_model(trained, "m", to="tflite")
    with pytest.raises(InputError, match="`numbers`"):
        export_model(trained, "m", to="onnx", numbers="int8")
