"""A target read to a model: its probabilities, its rows, and the alignment that they make."""

import random

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.architecture import ATTENTIONS
from regard.seq2seq.batch import collate
from regard.seq2seq.ensemble import Ensemble
from regard.seq2seq.export.weights import weights_of
from regard.seq2seq.forced import END, aligned
from regard.seq2seq.job import JobSettings, train_pairs
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.runtime.model import model_of
from regard.seq2seq.runtime.transducer import NumpyTransducer
from regard.seq2seq.settings import TrainConfig
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.vocab import UNK, Vocab

PAIRS = [("abc", "K L"), ("g", "M"), ("fedcbag", "N N K L M"), ("bad", "L"), ("ca", "K M M")]


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_rows_and_probabilities_are_those_of_teacher_forcing(lively, attention):
    made = lively(attention)
    vocab = made.description
    for (source, target), one in zip(PAIRS, made.force(PAIRS, batch_tokens=23), strict=True):
        batch = collate([(vocab.source.encode(source), vocab.target.encode(target))])
        with torch.no_grad():
            scored = made.model(batch.source, batch.inputs)
        scores = scored.symbol_scores[0].index_fill(-1, torch.tensor([0, 1, UNK]), -torch.inf)
        wanted = torch.log_softmax(scores, -1).gather(1, batch.targets[0][:, None])[:, 0]
        np.testing.assert_allclose(one.log_probs, wanted, atol=1e-5)
        if attention == "none":
            assert one.weights is None
        else:
            np.testing.assert_allclose(one.weights, scored.weights[0], atol=1e-6)
            assert one.weights.shape == (len(target.split()) + 1, len(source))


def test_ones_own_answer_has_the_rows_that_the_search_saw(lively):
    made = lively()
    answers = [p for p in made.predict([s for s, _ in PAIRS]) if p.target]
    read = made.force([(p.source, p.target) for p in answers])
    assert len(answers) > 2
    for prediction, one in zip(answers, read, strict=True):
        seen = prediction.hypothesis
        np.testing.assert_allclose(one.weights[:-1], seen.weights, atol=1e-6)
        np.testing.assert_allclose(
            one.log_probs[: len(seen.log_probs)], seen.log_probs, atol=1e-5
        )


def test_an_ensemble_reads_with_the_mean_of_its_members(lively):
    members = [lively("bahdanau", 3), lively("general", 5)]
    vocab = members[0].description
    both = Transducer(Ensemble([m.model for m in members]).eval(), vocab)
    each = [member.force(PAIRS) for member in members]
    for (source, target), one, *parts in zip(PAIRS, both.force(PAIRS), *each, strict=True):
        np.testing.assert_allclose(
            one.weights, np.mean([part.weights for part in parts], axis=0), atol=1e-6
        )
        batch = collate([(vocab.source.encode(source), vocab.target.encode(target))])
        with torch.no_grad():
            scores = [m.model(batch.source, batch.inputs).symbol_scores[0] for m in members]
        mean = torch.stack([torch.softmax(one, -1) for one in scores]).mean(0)
        mean[:, [0, 1, UNK]] = 0
        wanted = (mean / mean.sum(-1, keepdim=True)).gather(1, batch.targets[0][:, None])
        np.testing.assert_allclose(one.log_probs, wanted[:, 0].log(), atol=1e-5)


@pytest.mark.parametrize("attention", ["bahdanau", "general", "location"])
def test_an_exported_model_reads_as_the_trained_one_does(lively, attention):
    made = lively(attention)
    exported = NumpyTransducer(
        model_of([made.model.config], weights_of(made.model)), made.description
    )
    for one, other in zip(made.force(PAIRS), exported.force(PAIRS), strict=True):
        np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)
        np.testing.assert_allclose(one.log_probs, other.log_probs, atol=1e-4)


def test_unknown_symbols_are_read_and_told_and_never_likely(lively):
    (one,) = lively().force([("axb", "K Q L")])
    assert (one.unknown, one.unknown_target) == (("x",), ("Q",))
    assert one.target_symbols == ("K", "Q", "L")
    assert np.isneginf(one.log_probs).tolist() == [False, True, False, False]
    assert one.weights.shape == (4, 3)
    with pytest.raises(InputError, match="never saw"):
        lively().force([("axb", "K")], unknown="fail")


@pytest.mark.parametrize(
    ("pair", "options", "said"),
    [
        (("", "K"), {}, "source 0 is empty"),
        (("a", " "), {}, "target 0 is empty"),
        (("a", "K"), {"unknown": "copy"}, "a known target is not changed"),
        (("a", "K"), {"unknown": "eat"}, "`unknown` is refused"),
    ],
)
def test_what_cannot_be_read_is_refused(lively, pair, options, said):
    with pytest.raises(InputError, match=said):
        lively().force([pair], **options)


def test_the_end_is_a_row_of_its_own_and_only_where_asked(lively):
    made = lively()
    (one,) = made.force([("abc", "K L")])
    sides = made.description.source, made.description.target
    assert aligned(one, *sides).target == ("K", "L")
    whole = aligned(one, *sides, end=True)
    assert whole.target == ("K", "L", END)
    np.testing.assert_allclose(whole.weights[2], one.weights[2])


@pytest.mark.parametrize("attention", ["local-p", "local-m", "monotonic"])
def test_rows_that_leave_something_out_are_scaled_and_say_so(lively, attention):
    made = lively(attention)
    seen = [
        aligned(one, made.description.source, made.description.target)
        for one in made.force(PAIRS)
    ]
    for one in seen:
        sums = one.weights.sum(1)
        assert ((abs(sums - 1) < 1e-2) | (sums == 0)).all()
    assert ("rows" in {key for one in seen for key in one.made_by}) is (attention == "local-p")


def test_features_are_columns_that_can_be_left_out(lively):
    made = lively(source={"features": True})
    made.description.source.__dict__.pop("_ids", None)
    (one,) = made.force([("ab\tPL;X", "K L")])
    sides = made.description.source, made.description.target
    assert aligned(one, *sides).source == ("[PL]", "[X]", "a", "b")
    plain = aligned(one, *sides, features=False)
    assert plain.source == ("a", "b")
    np.testing.assert_allclose(
        plain.weights, one.weights[:-1, 2:] / one.weights[:-1, 2:].sum(1, keepdims=True)
    )


def test_pieces_become_words_and_features_stay_apart():
    pytest.importorskip("sentencepiece", reason="subwords need sentencepiece")
    texts = [f"der {noun}baum steht am {noun}haus\tN;PL" for noun in ("apfel", "birn", "nuss")]
    vocab = Vocab.of(texts, kind="subwords", features=True, size=30)
    plain = Vocab.of(["K L"], kind="spaces")
    symbols = vocab.split("der apfelbaum\tN;PL")
    assert len(symbols) > 4
    weights = np.full((3, len(symbols)), 1 / len(symbols), dtype=np.float32)
    from regard.seq2seq.forced import Forced

    one = Forced("", "", tuple(symbols), ("K", "L"), (), (), (0.0,) * 3, weights)
    seen = aligned(one, vocab, plain)
    assert seen.source == ("[N]", "[PL]", "der", "apfelbaum")
    np.testing.assert_allclose(seen.weights[0, :2], 1 / len(symbols), rtol=1e-6)
    assert len(aligned(one, vocab, plain, pieces=True).source) == len(symbols)
    turned = Forced("", "", ("K", "L"), tuple(symbols), (), (), (0.0,), np.full((1, 2), 0.5))
    turned = Forced(
        *("", "", ("K", "L"), tuple(symbols), (), ()),
        *((0.0,), np.full((len(symbols) + 1, 2), 0.5, dtype=np.float32)),
    )
    assert aligned(turned, plain, vocab, end=True).target == (
        *("[N]", "[PL]", "der", "apfelbaum", END),
    )


def test_a_model_without_attention_aligns_nothing(lively):
    made = lively("none")
    (one,) = made.force([("a", "K")])
    with pytest.raises(InputError, match="no weights to align by"):
        aligned(one, made.description.source, made.description.target)


def _said_aloud():
    """Letters, their sounds, and which letter makes which: h is silent, as in NETtalk."""
    draw, found = random.Random(0), {}
    while len(found) < 900:
        letters, links = [], []
        for _ in range(draw.randint(3, 7)):
            if draw.random() < 0.3:
                letters.append("h")
            links.append((len(letters), len(links)))
            letters.append(draw.choice("bcdefgijklmnopqrstuvwyz"))
        sounds = " ".join(letters[i].upper() for i, _ in links)
        found["".join(letters)] = (sounds, links)
    return found


@pytest.mark.parametrize("attention", ["bahdanau", "general"])
def test_the_row_of_its_own_step_hits_and_the_one_after_it_does_not(attention):
    # Bahdanau asks with the state before the step and Luong with the one after it; whoever
    # reads either one step late gets the next letter's row.
    words = _said_aloud()
    items = [(letters, sounds) for letters, (sounds, _) in words.items()]
    sizes = {"d_in": 13, "d_hidden": 11, "d_s": 29, "d_attn": 23, "dropout": 0.0}
    settings = JobSettings(
        target_symbols="spaces",
        model={"attention": attention, **sizes},
        batch_tokens=700,
        train=TrainConfig(steps=300, learning_rate=2e-2, warm_up=10),
    )
    trained, _ = train_pairs(Pairs(tuple(items[:800])), Pairs(tuple(items[800:820])), settings)
    right, late, links = 0, 0, 0
    for one in trained.force(items[800:]):
        for letter, sound in words[one.source][1]:
            links += 1
            right += int(one.weights[sound].argmax()) == letter
            late += int(one.weights[sound + 1].argmax()) == letter
    assert right / links > 0.65
    assert late / links < 0.5
    assert (right - late) / links > 0.25
