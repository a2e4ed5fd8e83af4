import sys

import pytest

from regard.errors import BackendError, InputError
from regard.seq2seq.bleu import bleu, chrf

pytest.importorskip("sacrebleu")


def test_the_references_themselves_score_a_hundred():
    texts = ["the cat sat on the mat .", "it is a fine day today ."]
    for score in (bleu(texts, [[t] for t in texts]), chrf(texts, [[t] for t in texts])):
        assert score.score == pytest.approx(100.0)


def test_bleu_is_the_geometric_mean_of_its_precisions():
    # Of five words four are right, of four pairs two, of three triples one, of two fours none:
    # that one is smoothed to half an n-gram. Both texts are of one length: no penalty.
    found = bleu(["a b x d e"], [["a b c d e"]], tokenize="none")
    precisions = [4 / 5, 2 / 4, 0.5 / 3, 0.25 / 2]
    product = 1.0
    for precision in precisions:
        product *= precision
    assert found.score == pytest.approx(100 * product**0.25, rel=1e-6)


def test_examples_may_have_different_numbers_of_references():
    predictions = ["a b c d e", "f g h i j"]
    references = [["x x x x x", "a b c d e"], ["f g h i j"]]
    assert bleu(predictions, references).score == pytest.approx(100.0)


def test_the_signature_says_how_text_was_cut():
    assert "tok:none" in bleu(["a b"], [["a b"]], tokenize="none").signature
    assert "tok:13a" in bleu(["a b"], [["a b"]]).signature


@pytest.mark.parametrize(
    ("predictions", "references"), [([], []), (["a"], []), (["a"], [[]]), (["a"], [["a"]] * 2)]
)
def test_what_does_not_match_is_refused(predictions, references):
    with pytest.raises(InputError, match="do not match"):
        bleu(predictions, references)


def test_without_sacrebleu_the_error_names_the_extra(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("sacrebleu")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(BackendError, match=r"regard\[bleu\]"):
        chrf(["a"], [["a"]])
