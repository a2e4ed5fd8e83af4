import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.checkpoint import Description, save_description, save_weights
from regard.seq2seq.ensemble import Ensemble, joined, load_any, save_ensemble
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.search import beam_search, greedy
from regard.seq2seq.train import new_model
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import BOS, Vocab

SOURCE, TARGET = Vocab.of(["abcdefg"], kind="chars"), Vocab.of(["K L M"], kind="spaces")


def _member(attention: str, seed: int, source=SOURCE, target=TARGET, longest=5):
    sizes = {"d_in": 5, "d_hidden": 7, "d_s": 11 + 2 * seed, "d_attn": 13, "dropout": 0.0}
    config = ModelConfig(len(source), len(target), attention=attention, **sizes)
    return new_model(config, seed=seed).eval(), Description(config, source, target, 3, longest)


@pytest.fixture
def members():
    kinds = ("none", "bahdanau", "general")
    return [_member(kind, seed, longest=5 + seed) for seed, kind in enumerate(kinds)]


@pytest.fixture
def directory(members, tmp_path):
    for i, (model, description) in enumerate(members):
        (tmp_path / str(i)).mkdir()
        save_description(tmp_path / str(i), description)
        save_weights(tmp_path / str(i), description, model.state_dict())
    save_ensemble(tmp_path, ["0", "1", "2"])
    return tmp_path


def test_probabilities_and_weights_are_the_means_of_the_members(members):
    ensemble, _ = joined(members, ["a", "b", "c"])
    source = torch.tensor([[4, 5, 6], [7, 8, 0]])
    lengths = torch.tensor([3, 2])
    memory, state = ensemble.start(source, lengths)
    previous = torch.tensor([BOS, BOS])
    inputs = [previous]
    for _ in range(3):
        scores, state, weights = ensemble.step(previous, memory, state)
        with torch.no_grad():
            scored = [model(source, torch.stack(inputs, 1), lengths) for model, _ in members]
        wanted = torch.stack([s.symbol_scores[:, -1].softmax(-1) for s in scored]).mean(0)
        torch.testing.assert_close(scores.exp(), wanted, atol=1e-5, rtol=0)
        looked = torch.stack([s.weights[:, -1] for s in scored if s.weights is not None])
        torch.testing.assert_close(weights, looked.mean(0), atol=1e-5, rtol=0)
        previous = scores[:, 4:].argmax(-1) + 4
        inputs.append(previous)


def test_searches_run_on_an_ensemble_and_a_beam_of_one_is_greedy(members):
    ensemble, _ = joined(members, ["a", "b", "c"])
    source, lengths = torch.tensor([[4, 5, 6], [7, 8, 0], [9, 9, 4]]), torch.tensor([3, 2, 3])
    one = greedy(ensemble, source, lengths, max_length=[7, 3, 5])
    found = beam_search(ensemble, source, lengths, max_length=[7, 3, 5], beam=1)
    assert [h.ids for h in one] == [answers[0].ids for answers in found]
    np.testing.assert_allclose(
        [h.log_prob for h in one], [a[0].log_prob for a in found], atol=1e-5
    )


def test_searches_leave_dropout_as_it_was(members):
    ensemble, _ = joined(members, ["a", "b", "c"])
    greedy(ensemble, torch.tensor([[4, 5, 6]]), max_length=5)
    assert not any(member.training for member, _ in members)
    by_hand = Ensemble([member for member, _ in members])
    greedy(by_hand, torch.tensor([[4, 5, 6]]), max_length=5)
    assert not any(member.training for member, _ in members)


def test_an_ensemble_directory_is_read_as_a_model(directory, members):
    sources = ["abc", "g", "fedcba"]
    found = Transducer.load(directory).predict(sources)
    together = Transducer(*joined(members, ["a", "b", "c"])).predict(sources)
    assert [p.target for p in found] == [p.target for p in together]
    assert isinstance(load_any(directory)[0], Ensemble)
    assert load_any(directory)[1].longest_target == 7


def test_models_named_one_by_one_are_the_same_ensemble(directory):
    named = Transducer.load(*(directory / name for name in "012"))
    log_probs = [
        transducer.predict(["abc"])[0].hypothesis.log_prob
        for transducer in (named, Transducer.load(directory))
    ]
    assert log_probs[0] == pytest.approx(log_probs[1], abs=1e-6)
    assert len(Transducer.load(directory, directory / "0").model.members) == 4


@pytest.mark.parametrize(
    ("side", "vocab", "said"),
    [
        ("source", Vocab.of(["abcdefh"], kind="chars"), "without 'g', with 'h'"),
        ("target", Vocab.of(["K L N"], kind="spaces"), "without 'M', with 'N'"),
        ("target", Vocab.of(["KLM"], kind="chars"), "of kind chars"),
    ],
)
def test_models_whose_vocabularies_differ_are_refused(members, side, vocab, said):
    other = _member("none", 3, **{side: vocab})
    with pytest.raises(InputError, match="other: its " + side) as caught:
        joined([members[0], other], ["first", "other"])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "damaged"),
        ("[]", "this is no ensemble"),
        ('{"format": 1, "members": []}', "this is no ensemble"),
        ('{"format": 2, "members": ["0"]}', "this is no ensemble"),
        ('{"format": 1, "members": ["../x"]}', "lies outside"),
        ('{"format": 1, "members": ["/x"]}', "lies outside"),
        ('{"format": 1, "members": ["5"]}', "no such directory"),
    ],
)
def test_a_bad_ensemble_file_is_one_clean_error(directory, content, said):
    (directory / "ensemble.json").write_text(content)
    with pytest.raises(InputError, match=said):
        Transducer.load(directory)


def test_models_of_different_sizes_are_no_ensemble(members):
    with pytest.raises(InputError, match="`members`"):
        Ensemble([])
    small = _member("none", 5, source=Vocab.of(["ab"], kind="chars"))
    with pytest.raises(InputError, match="`members`"):
        Ensemble([members[0][0], small[0]])
