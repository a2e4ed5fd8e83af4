import pytest

from regard.aligner.corpus import SentencePairs, read_pairs
from regard.errors import InputError


def test_pairs_are_read_from_one_file_or_from_two(tmp_path):
    (tmp_path / "tabs").write_text("the cat\tle chat\n\tvide\n")
    (tmp_path / "bars").write_text("the cat ||| le chat\n ||| vide\n")
    (tmp_path / "en").write_text("the cat\n\n")
    (tmp_path / "fr").write_text("le chat\nvide\n")
    expected = ((("the", "cat"), ()), (("le", "chat"), ("vide",)))
    for found in (
        read_pairs(tmp_path / "tabs"),
        read_pairs(tmp_path / "bars"),
        read_pairs(tmp_path / "en", tmp_path / "fr"),
    ):
        assert (found.source, found.target) == expected
        assert found.sizes == [(2, 2), (0, 1)]
    assert len({read_pairs(tmp_path / name).sha256 for name in ("tabs", "bars")}) == 1


def test_a_line_that_is_no_pair_is_named(tmp_path):
    (tmp_path / "text").write_text("a\tb\nno pair here\n")
    with pytest.raises(InputError) as caught:
        read_pairs(tmp_path / "text")
    assert str(caught.value) == (
        f"{tmp_path / 'text'}, line 2: this is no sentence pair\n"
        "  expected  source<TAB>target, or source ||| target\n"
        "  got       no pair here"
    )


def test_files_of_different_lengths_are_refused(tmp_path):
    (tmp_path / "en").write_text("a\nb\nc\n")
    (tmp_path / "fr").write_text("a\nb\n")
    with pytest.raises(InputError, match="3 and 2 lines"):
        read_pairs(tmp_path / "en", tmp_path / "fr")


def test_no_pairs_at_all_are_refused():
    with pytest.raises(InputError, match="at least one"):
        SentencePairs([], [])
