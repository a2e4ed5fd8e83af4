import pytest

from regard.errors import InputError
from regard.seq2seq.search import wanted
from regard.seq2seq.vocab import FIRST, Vocab

VOCAB = Vocab.of(["K L M"], kind="spaces")


def test_nothing_wanted_is_no_constraint():
    assert wanted(VOCAB) == (None, (), 0)
    assert wanted(VOCAB, min_length=3).constraint.shortest == 3


def test_allowed_symbols_are_those_of_the_texts():
    found = wanted(VOCAB, allow=["K X", "M Y X"])
    assert found.constraint.allowed[FIRST:].tolist() == [True, False, True]
    assert not found.constraint.allowed[:FIRST].any()
    assert found.unknown == ("X", "Y")


def test_a_lexicon_is_thinned_out_by_what_cannot_be_answered():
    lexicon = ["K", "K L", "K L M", "K L M L", "K X", "", "K L"]
    found = wanted(VOCAB, lexicon=lexicon, min_length=2, max_length=3)
    assert found.left_out == 3
    assert found.constraint.trie.longest == 3
    assert wanted(VOCAB, lexicon=lexicon, allow=["K L"]).left_out == 3


@pytest.mark.parametrize("given", [{"allow": ["X"]}, {"lexicon": ["X"]}, {"lexicon": []}])
def test_what_leaves_nothing_to_answer_is_refused(given):
    with pytest.raises(InputError, match="that the model can answer"):
        wanted(VOCAB, **given)
