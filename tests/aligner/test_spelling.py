import numpy as np
import pytest

from regard.aligner.spelling import alike


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("7", "7", 1.0),  # the same, however short
        (",", ".", 0.0),
        ("PARIS", "paris", 1.0),
        ("Général", "general", 1.0),
        ("nation", "nacion", (5 / 6 - 0.6) / 0.4),
        ("construct", "restruct", (6 / 9 - 0.6) / 0.4),  # the same end; "struct" is common
        ("cat", "car", 0.0),  # too short to mean anything
        ("other", "ether", 0.0 + (4 / 5 - 0.6) / 0.4),  # the same three at the end
        ("stone", "tones", 0.0),  # neither one begins nor ends as the other
        ("table", "thick", 0.0),  # one letter of five in common
    ],
)
def test_likeness_is_what_its_equation_says(one, other, expected):
    np.testing.assert_allclose(alike([one], [other]), [expected], atol=1e-12)
    np.testing.assert_allclose(alike([other], [one]), [expected], atol=1e-12)


def test_words_of_another_script_are_like_none():
    assert alike(["дом", "家庭住宅"], ["house", "house"]).tolist() == [0.0, 0.0]
