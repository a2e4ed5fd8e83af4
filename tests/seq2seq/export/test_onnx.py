import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.architecture import ModelConfig
from regard.seq2seq.description import Description
from regard.seq2seq.export.agreement import agreement, made_up
from regard.seq2seq.export.onnx_files import onnx_files
from regard.seq2seq.runtime.onnx_model import OnnxTransducer
from regard.seq2seq.search import Ranking, SearchSettings
from regard.seq2seq.train import new_model
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import EOS, Vocab

onnxruntime = pytest.importorskip("onnxruntime")

SOURCE = Vocab.of(["abcdefgh"], kind="chars")
TARGET = Vocab.of(["xyzuv"], kind="chars")
EVERY = {
    "none": {"cell": "lstm", "layers": 2, "decoder_layers": 2},
    "bahdanau": {},
    "bahdanau, three layers": {"attention": "bahdanau", "decoder_layers": 3, "cell": "lstm"},
    "bahdanau, tied": {
        "attention": "bahdanau",
        "d_readout": 5,
        "tied": True,
        "bidirectional": False,
    },
    "dot": {"d_s": 14, "d_readout": 3},
    "general": {"cell": "lstm"},
    "concat": {"decoder_layers": 2},
    "fed": {"attention": "general", "input_feeding": True, "decoder_layers": 2},
    "coverage": {},
    "location": {"filters": 3, "filter_width": 5, "decoder_layers": 2},
    "bahdanau-paper": {},
}


def trained(name: str) -> Transducer:
    sizes = {"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13}
    given = {"attention": name, **sizes, **EVERY.get(name, {})}
    config = ModelConfig(len(SOURCE), len(TARGET), **given)
    model = new_model(config, seed=3).eval()
    with torch.no_grad():
        for index, parameter in enumerate(model.parameters()):
            generator = torch.Generator().manual_seed(index)
            parameter.add_(torch.randn(parameter.shape, generator=generator), alpha=0.5)
    return Transducer(model, Description(config, SOURCE, TARGET, 7, 5))


@pytest.mark.parametrize("name", EVERY)
def test_the_files_say_what_the_trained_model_says(name):
    model = trained(name)
    files, other = onnx_files(model.model, model.description)
    assert set(files) == {"encoder.onnx", "step.onnx", "greedy.onnx"}
    assert other.description == model.description
    assert other.attends is model.attends
    found = agreement(model, other, made_up(model.description, 97))
    assert found.same == found.sources == 97
    assert found.steps > 97
    assert 0 < found.difference < 1e-5
    assert found.weight_difference < 1e-5
    texts = ["abcab", "ba", "hgf", "c"]
    for how in (
        SearchSettings(max_length=3),
        SearchSettings(beam=4, nbest=3, ranking=Ranking(0.6)),
        SearchSettings(min_length=2),
    ):
        answers, wanted = (m.predict(texts, search=how) for m in (other, model))
        for one, expected in zip(answers, wanted, strict=True):
            assert [a.target for a in one.answers] == [a.target for a in expected.answers]
            mine, theirs = one.hypothesis, expected.hypothesis
            assert mine.finished is theirs.finished
            np.testing.assert_allclose(mine.score, theirs.score, atol=1e-4)
            if model.attends:
                np.testing.assert_allclose(mine.weights, theirs.weights, atol=1e-5)


@pytest.mark.parametrize("name", ["local-m", "local-p", "monotonic"])
def test_what_is_not_written_as_onnx_is_refused_by_name(name):
    model = trained(name)
    with pytest.raises(InputError, match=f"'{name}'"):
        onnx_files(model.model, model.description)


def test_the_greedy_file_is_of_use_without_regard():
    model = trained("bahdanau")
    files, _ = onnx_files(model.model, model.description)
    session = onnxruntime.InferenceSession(files["greedy.onnx"])
    ids = [SOURCE.encode(text) for text in ("abca", "h")]
    source = np.array([ids[0], ids[1] + [0, 0, 0]])
    symbols, log_probs, weights = session.run(
        ["symbols", "log_probs", "weights"],
        {"source": source, "lengths": np.array([4, 1]), "limits": np.array([9, 2])},
    )
    assert symbols.shape == log_probs.shape == weights.shape[:2]
    for row, (answer, limit) in enumerate(
        zip(model.predict(["abca", "h"]), (9, 2), strict=True)
    ):
        wanted = list(answer.hypothesis.ids[:limit])
        found = symbols[row].tolist()
        assert found[: len(wanted)] == wanted
        assert all(symbol in (0, EOS) for symbol in found[len(wanted) :])


def test_a_byte_that_was_changed_anywhere_is_noticed():
    files, _ = onnx_files((model := trained("none")).model, model.description)
    for name, whole in files.items():
        embedding = model.model.embedding.weight.detach().numpy().tobytes()
        weights = whole.find(embedding) if name != "encoder.onnx" else len(whole) // 2
        assert weights > 0
        embedding = model.model.embedding.weight.detach().numpy().tobytes()
        weights = len(whole) // 2 if name == "encoder.onnx" else whole.index(embedding)
        seal = whole.rindex(b"sha256")
        for place in (weights, len(whole) // 3, seal, seal + 11, len(whole) - 1):
            changed = bytearray(whole)
            changed[place] ^= 1
            with pytest.raises(InputError, match=rf"(?s)copy/{name}.*check sum"):
                OnnxTransducer.of(files | {name: bytes(changed)}, "copy")


def test_files_of_two_models_that_differ_in_their_weights_alone_are_refused():
    one, other = trained("none"), trained("none")
    with torch.no_grad():
        next(other.model.parameters()).mul_(2)
    files = [onnx_files(each.model, each.description)[0] for each in (one, other)]
    with pytest.raises(InputError, match="different models"):
        OnnxTransducer.of(files[0] | {"step.onnx": files[1]["step.onnx"]}, "copy")
