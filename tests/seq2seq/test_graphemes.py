import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.seq2seq.graphemes import graphemes

# By Unicode's grapheme clusters, written out by hand.
CASES = {
    "plain": ["a", "b", " ", "c"],
    "marks": ["\u0254\u0303", "n\u0329\u0302", "a"],
    "Hindi": ["\u0928", "\u092e", "\u0938\u094d", "\u0924\u0947"],
    "Thai": ["\u0e17\u0e35\u0e48", "\u0e19\u0e35\u0e48"],
    "Arabic": ["\u0628\u0651\u064e", "\u0627"],
    "Korean letters": ["\u1112\u1161\u11ab", "\u1100\u1173\u11af"],
    "Korean syllables": ["\ud55c", "\uae00"],
    "a syllable and an end": ["\uac00\u11a8", "\uac01\u11a8", "\uac01", "\u1161"],
    "a family": ["\U0001f469\u200d\U0001f467", "\U0001f469"],
    "skin and presentation": ["\U0001f44d\U0001f3fd", "\u2764\ufe0f"],
    "flags": ["\U0001f1e9\U0001f1ea", "\U0001f1eb\U0001f1f7", "\U0001f1e9"],
    "a mark on nothing": ["\u0301", "a"],
    "a mark behind a space": ["a", " ", "\u0301"],
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_marks_stay_with_their_letter(case):
    assert graphemes("".join(CASES[case])) == CASES[case]


@given(
    st.text(alphabet="a\u0301\u200d\u1100\u1161\u11a8\uac00\U0001f1e9\U0001f469 ") | st.text()
)
def test_put_together_they_are_the_text(text):
    symbols = graphemes(text)
    assert "".join(symbols) == text
    assert all(symbols)
