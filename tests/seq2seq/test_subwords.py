import base64
import copy
import json
import pickle
import random
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import InputError
from regard.seq2seq.subwords import Subwords
from regard.seq2seq.vocab import UNK, Vocab

pytest.importorskip("sentencepiece")

TEXTS = [
    f"the {adjective} {animal}s  ran to \u00fcber {number} \u2581 \u2585 ponds"
    for adjective in ("small", "smaller", "smallest")
    for animal in ("cat", "dog", "frog")
    for number in ("two", "three")
]


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return Vocab.of(TEXTS, kind="subwords", size=53)


def test_pieces_are_longer_than_characters_and_no_more_than_were_asked_for(vocab):
    assert len(vocab.symbols) <= 53 + 2  # and the two characters that stand apart
    assert len(vocab.split(TEXTS[0])) < len(TEXTS[0])
    assert any(len(symbol) > 3 and symbol.startswith(" ") for symbol in vocab.symbols)


def test_the_order_of_the_texts_is_free(vocab):
    turned = random.Random(5).sample(TEXTS, len(TEXTS))
    assert Vocab.of(turned, kind="subwords", size=53) == vocab


def test_every_symbol_of_the_training_texts_is_known(vocab):
    assert all(UNK not in vocab.encode(text) for text in TEXTS)
    assert all(vocab.decode(vocab.encode(text)) == text for text in TEXTS)


@given(st.text(alphabet="the smal\u2581\u2585\u00fc\u4e2d\u3000\n", max_size=23) | st.text())
def test_a_text_cut_and_put_together_is_the_same_text(vocab, text):
    text = "".join(c for c in text if c not in "\t\0" and not 0xD800 <= ord(c) < 0xE000)
    plain = Vocab(vocab.symbols, "subwords", "none", subwords=vocab.subwords)
    assert plain.join(plain.split(text)) == text


def test_unknown_characters_are_reported_one_by_one(vocab):
    assert vocab.unknown("the\u4e2d\u6587 cats") == ["\u4e2d", "\u6587"]


def test_labels_show_where_a_word_begins(vocab):
    assert vocab.label(" the") == "\u2581the"


def test_the_model_travels_with_the_json_form(vocab):
    again = Vocab.from_json(json.loads(json.dumps(vocab.to_json())))
    assert again == vocab
    assert again.split("the smallest frogs") == vocab.split("the smallest frogs")


def test_a_vocabulary_that_was_used_can_be_copied_and_sent(vocab):
    vocab.split("the")
    for again in (copy.deepcopy(vocab), pickle.loads(pickle.dumps(vocab))):
        assert again.split("the smallest") == vocab.split("the smallest")


def test_fewer_symbols_than_characters_are_refused(vocab):
    count = len({c for text in TEXTS for c in text} - {"\u2581", "\u2585"})
    with pytest.raises(InputError, match=f"at least {count}, "):
        Vocab.of(TEXTS, kind="subwords", size=count - 1)
    Vocab.of(TEXTS, kind="subwords", size=count)


@pytest.mark.parametrize("texts", [[], [""], ["\u2581"]])
def test_nothing_to_learn_from_is_refused(texts):
    with pytest.raises(InputError, match="no text to learn from"):
        Subwords.trained(texts)


@pytest.mark.parametrize("model", ["", "\u00e9", "a", base64.b64encode(b"no model").decode()])
def test_a_damaged_model_is_refused(model):
    with pytest.raises(InputError, match="damaged"):
        Subwords(model).split("the")


def test_without_sentencepiece_a_model_is_used_and_the_extra_is_named_to_train(
    vocab, monkeypatch
):
    cut = vocab.split("the smallest \u4e2d\u6587 ran")
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    assert Vocab.from_json(vocab.to_json()).split("the smallest \u4e2d\u6587 ran") == cut
    with pytest.raises(InputError, match=r"regard\[subwords\]"):
        Vocab.of(TEXTS, kind="subwords")


def test_a_model_of_other_symbols_is_refused(vocab):
    other = Vocab(vocab.symbols[1:], "subwords", subwords=vocab.subwords)
    with pytest.raises(InputError, match="another vocabulary"):
        other.encode("the")
