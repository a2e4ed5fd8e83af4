import pytest

from regard.alignment.labels import LONGEST, label, label_width


@pytest.mark.parametrize(
    ("token", "shown"),
    [("a b", "a␣b"), ("", "∅"), ("\n\x1b", "\ufffd\ufffd"), ("猫", "猫"), ("a" * 16, "a" * 16)],
)
def test_a_token_is_made_visible(token, shown):
    assert label(token) == shown


def test_a_long_token_ends_in_an_ellipsis():
    assert label("a" * 17) == "a" * (LONGEST - 1) + "…"


@pytest.mark.parametrize("text", ["WWWWWW", "mmmm", "UW", "illicit", "Straße", "▁the", "…"])
def test_a_label_is_no_wider_than_it_is_taken_for(text):
    pytest.importorskip("matplotlib", reason="measures with matplotlib")
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    drawn = TextPath((0, 0), text, prop=FontProperties(size=12)).get_extents().width
    assert drawn <= label_width(text, 12) <= 3 * drawn + 12


def test_a_character_of_full_width_takes_a_square():
    assert label_width("猫犬", 10) == pytest.approx(2 * 10.5)
