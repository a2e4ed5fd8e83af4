import pytest

from regard.seq2seq.inspection.leftovers import leftovers


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("\\N", "missing"),
        ("NULL", "missing"),
        ("null", None),
        ("NULL pointer", None),
        ("a &lt; b", "entity"),
        ("it&#39;s", "entity"),
        ("&#x1F600;", "entity"),
        ("R & D;", None),
        ("AT&T; and", None),
        ("&;", None),
        ('"a ""b"" c"', "csv-quotes"),
        ('"""a"""', "csv-quotes"),
        ('"Go!"', None),
        ('"', None),
        ('""', None),
    ],
)
def test_what_programs_left_is_told_from_text(text, code):
    assert leftovers(text) == code
