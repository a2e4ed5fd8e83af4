import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.seq2seq.subwords import Subwords
from regard.seq2seq.unigram import Unigram

sentencepiece = pytest.importorskip("sentencepiece")

WORDS = ["low", "lower", "lowest", "slow", "slower", "wide", "wider", "n\u00e4he", "h\u00f6her"]
TEXTS = [f"{a} {b} {c}" for a in WORDS for b in WORDS[:5] for c in WORDS[5:9]]


@pytest.fixture(scope="module")
def model() -> bytes:
    return base64.b64decode(Subwords.trained(TEXTS, size=61).model)


@pytest.fixture(scope="module")
def theirs(model):
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model)
    return processor


def test_the_pieces_are_the_ones_of_the_library(model, theirs):
    pieces = [theirs.id_to_piece(i) for i in range(len(theirs)) if not theirs.is_unknown(i)]
    assert Unigram(model).pieces == pieces


@given(
    st.lists(st.sampled_from(WORDS), max_size=13).map(" ".join)
    | st.text(alphabet="lowersidnh\u00e4 \u4e2dx", max_size=31)
)
def test_a_text_is_cut_as_the_library_cuts_it(model, theirs, text):
    ours = Unigram(model).encode(text.replace(" ", "\u2581"))
    assert ours == theirs.encode(text, out_type=str)


def _piece(text: bytes, score: bytes = b"\0\0\x80\xbf", kind: int = 1) -> bytes:
    inner = b"\x0a" + bytes([len(text)]) + text + b"\x15" + score + b"\x18" + bytes([kind])
    return b"\x0a" + bytes([len(inner)]) + inner


def test_of_equal_sums_the_one_found_first_is_kept():
    # ab + c and a + bc both cost two.
    model = b"".join(map(_piece, (b"a", b"c", b"ab", b"bc")))
    assert Unigram(model).encode("abc") == ["a", "bc"]


def test_unknown_characters_cost_ten_more_than_the_rarest_piece_and_stay_together():
    model = _piece(b"a") + _piece(b"aaa", b"\0\0\x80\xc0") + _piece(b"?", kind=2)
    assert Unigram(model).encode("xyaaaz?") == ["xy", "a", "a", "a", "z?"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x0a",
        b"\x0a\x05ab",
        b"\x0b",
        b"\xff" * 11,
        b"\x0a\x02\x08\x01",
        _piece(b"\xff"),
        _piece(b"a", b"\0\0\xc0\x7f"),  # NaN
        _piece(b"a", b"\0\0\x80\xff"),  # -inf
        _piece(b"a", b"\xff\xff\x7f\xff"),
    ],
)
def test_what_is_no_model_is_refused(data):
    with pytest.raises(ValueError, match=r"."):
        Unigram(data)


@given(st.binary(max_size=40))
def test_any_bytes_are_a_model_or_refused(data):
    try:
        model = Unigram(data)
    except ValueError:
        return
    assert model.pieces
