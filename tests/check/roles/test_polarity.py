"""What a mask means by its words."""

import pytest

from regard.check.roles.polarity import forms_of, meaning_of
from regard.check.roles.reading import read


def meaning(text: str, name: str = "mask"):
    reading = read(f'def attend(q, {name}):\n    """{text}"""\n    return q\n', "attend")
    return meaning_of(name, reading)


@pytest.mark.parametrize(
    ("text", "polarity"),
    [
        ("mask is True on padding.", "drop"),
        ("mask: True on real steps.", "keep"),
        ("mask is 1.0 on tokens and 0.0 on padding.", "keep"),
        ("mask: 0 in invalid positions, 1 else.", "keep"),
        ("mask: zeros for padding.", "keep"),
        ("mask is True where a key must be ignored.", "drop"),
        ("Masks are True on real tokens.", "keep"),
        ("mask: True = may attend.", "keep"),
        ("mask is 1 for words that are not padded.", "keep"),
        ("mask is True where there is no token.", "drop"),
        ("mask is 0 where there is no word.", "keep"),
        ("mask is additive.", "additive"),
        ("mask is added to the scores: 0, or a huge negative number.", "additive"),
    ],
)
def test_the_authors_sentence_decides(text, polarity):
    found = meaning(text)
    assert (found.polarity, found.stated) == (polarity, True)


@pytest.mark.parametrize(
    ("name", "polarity", "stated"),
    [
        ("valid", "keep", True),
        ("ignore", "drop", True),
        ("key_padding_mask", "drop", True),
        ("padding_mask", "drop", False),
        ("mask", "", False),
    ],
)
def test_a_name_that_libraries_use_both_ways_is_only_a_hint(name, polarity, stated):
    found = meaning("Attends.", name)
    assert (found.polarity, found.stated) == (polarity, stated)


def test_the_code_tells_in_which_form_a_mask_is_stored():
    for line, form in (
        ("masked_fill(q, ~mask)", "keep"),
        ("masked_fill(q, mask == 0)", "keep_int"),
        ("q + (1.0 - mask) * -1e9", "keep_float01"),
        ("q + mask", "additive"),
    ):
        reading = read(f"def attend(q, mask):\n    return {line}\n", "attend")
        assert forms_of("mask", meaning_of("mask", reading), reading)[0] == form


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("Binary and float masks are supported.", "drop"),
        ("key_padding_mask: a boolean or a float.", "drop"),
        ("key_padding_mask: a float.", "drop_float01"),
        ("key_padding_mask is 1.0 on padding.", "drop_float01"),
    ],
)
def test_of_two_forms_that_are_said_the_boolean_is_tried_first(text, form):
    source = f'def attend(q, key_padding_mask):\n    """{text}"""\n    return q\n'
    reading = read(source, "attend")
    name = "key_padding_mask"
    assert forms_of(name, meaning_of(name, reading), reading)[0] == form
