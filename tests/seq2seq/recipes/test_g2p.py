import pytest

from regard.errors import InputError
from regard.seq2seq.recipes import g2p


@pytest.fixture(scope="module")
def lexicon() -> g2p.Lexicon:
    return g2p.load()


def test_the_lexicon_has_the_published_sizes(lexicon):
    words = [len(part.references()) for part in lexicon]
    assert words[0] + words[1] == 106_837
    assert words[1:] == [2000, 12_000]
    assert len(lexicon.train) + len(lexicon.dev) == 113_438
    assert len(lexicon.test) == 12_753


def test_no_word_is_in_two_parts(lexicon):
    train, dev, test = (set(part.references()) for part in lexicon)
    assert not train & dev
    assert not train & test
    assert not dev & test


def test_the_symbols_are_the_published_ones(lexicon):
    letters = {letter for word in lexicon.train.references() for letter in word}
    phonemes = {phoneme for _, sounds in lexicon.train.items for phoneme in sounds.split()}
    assert len(letters) == 27
    assert len(phonemes) == 39
    for part in lexicon:
        assert {letter for word in part.references() for letter in word} <= letters


def test_a_word_has_all_its_pronunciations(lexicon):
    assert max(map(len, lexicon.test.references().values())) > 2


@pytest.mark.parametrize("attention", ["none", "bahdanau", "dot", "general", "concat"])
@pytest.mark.parametrize("preset", g2p.PRESETS)
def test_every_preset_and_attention_describes_a_model(lexicon, preset, attention):
    from regard.seq2seq.job import describe

    description = describe(lexicon.dev, g2p.settings(preset, attention=attention, seed=5))
    assert description.model.attention == attention


def test_an_unknown_preset_is_refused():
    with pytest.raises(InputError, match="minute or quick"):
        g2p.settings("hour")
