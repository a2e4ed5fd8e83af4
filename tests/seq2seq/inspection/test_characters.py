import contextlib

import pytest

from regard.seq2seq.inspection.characters import (
    damaged_encoding,
    describe,
    scripts,
    unseen_characters,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("abc 1", {"LATIN"}),
        ("12 !", set()),
        ("na\u00efve", {"LATIN"}),
        ("c\u0430t", {"LATIN", "CYRILLIC"}),
        ("\u03b8\u026an", {"LATIN"}),  # theta of the phonetic alphabet
        ("\u03b8\u03ac\u03bb\u03b1\u03c3\u03c3\u03b1", {"GREEK"}),
        ("\u6771\u4eac\u306e\u30bf\u30ef\u30fc \uc11c\uc6b8", {"CJK"}),
        ("\uff21\uff22", {"LATIN"}),  # full width
        ("\u0645\u0631\u062d\u0628\u0627", {"ARABIC"}),
        ("\u02b0\u02d0", set()),  # modifiers
    ],
)
def test_scripts_are_those_of_letters(text, found):
    assert scripts(text) == found


@pytest.mark.parametrize(
    ("text", "odd", "spaces"),
    [
        ("plain", "", ""),
        ("na\u00efve", "", ""),
        ("a\u200bb", "\u200b", ""),
        ("a\u00adb", "\u00ad", ""),
        ("a\x07b", "\x07", ""),
        ("a\ufffdb", "\ufffd", ""),
        ("\ue000", "\ue000", ""),
        ("\u115f", "\u115f", ""),
        ("a\u00a0b\u3000", "", "\u00a0\u3000"),
        ("a\u2028b", "\u2028", ""),
        ("a\u200cb", "\u200c", ""),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "", ""),  # Persian spelling
        ("\U0001f469\u200d\U0001f680", "", ""),  # one emoji
    ],
)
def test_what_cannot_be_seen_is_found_and_spelling_is_not(text, odd, spaces):
    assert unseen_characters(text, scripts(text)) == (set(odd), set(spaces))


def test_a_character_without_a_name_is_described_by_its_kind():
    assert describe("\x07") == "U+0007 a control character"
    assert describe("\ue000") == "U+E000 private use"
    assert describe("\U0001f469") == "U+1F469 WOMAN"


@pytest.mark.parametrize(
    "text", ["caf\u00e9", "gar\u00e7on \u20ac", "\u041f\u0440\u0438", "\u4e2d"]
)
def test_utf8_that_was_read_as_another_encoding_is_recognised(text):
    raw = text.encode()
    misread = raw.decode("latin-1")
    assert damaged_encoding(misread) == text
    with contextlib.suppress(UnicodeDecodeError):  # it has holes
        assert damaged_encoding(raw.decode("cp1252")) == text


@pytest.mark.parametrize(
    "text",
    ["cafe", "caf\u00e9", "\u00c9t\u00e9", "\u00abCAF\u00c9\u00bb", "\u00c4\u00d6\u00dc"],
)
def test_sound_text_is_not_taken_for_damaged(text):
    assert damaged_encoding(text) is None
