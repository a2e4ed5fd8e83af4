import base64
import math
import struct

import pytest
from hypothesis import example, given
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


def _message(field: int, inner: bytes) -> bytes:
    return bytes([field << 3 | 2, len(inner)]) + inner


def _piece(text: bytes, score: float = -1.0, kind: int = 1) -> bytes:
    number = struct.pack("<f", score)
    return _message(1, _message(1, text) + b"\x15" + number + b"\x18" + bytes([kind]))


# The library's own normalisation, without the space in front and the joining of spaces.
_NORMALISER = _message(3, _message(1, b"identity") + b"\x18\0\x20\0")


@given(
    st.dictionaries(
        st.text(alphabet="abc", min_size=1, max_size=5),
        st.sampled_from([0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 1.1]),
        min_size=2,
    ),
    st.text(alphabet="abcd", max_size=31),
)
@example({"a": 0.1, "b": 0.2, "ab": 0.3}, "ab")  # equal in single precision only
def test_of_nearly_equal_sums_the_library_keeps_the_same_one(costs, text):
    pieces = [_piece(piece.encode(), -cost) for piece, cost in costs.items()]
    model = _piece(b"<unk>", 0.0, 2) + b"".join(pieces) + _NORMALISER
    theirs = sentencepiece.SentencePieceProcessor()
    theirs.LoadFromSerializedProto(model)
    assert Unigram(model).encode(text) == theirs.encode(text, out_type=str)


def test_of_equal_sums_the_one_found_first_is_kept():
    # ab + c and a + bc both cost two.
    model = b"".join(map(_piece, (b"a", b"c", b"ab", b"bc")))
    assert Unigram(model).encode("abc") == ["a", "bc"]


def test_unknown_characters_cost_ten_more_than_the_rarest_piece_and_stay_together():
    model = _piece(b"a") + _piece(b"aaa", -4.0) + _piece(b"?", kind=2)
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
        _piece(b"a", math.nan),
        _piece(b"a", -math.inf),
        _piece(b"a", -3e38),
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
