from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.alignment.link_files import FORMATS, Format, read_links, write_links
from regard.alignment.links import Gold
from regard.errors import InputError

LINKS = st.frozensets(st.tuples(st.integers(0, 12), st.integers(0, 10)), max_size=9)
SENTENCES = st.lists(st.builds(Gold.of, LINKS, LINKS), min_size=1, max_size=7)


def written(directory: Path, text: str | bytes) -> Path:
    path = directory / "links.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@given(SENTENCES, st.sampled_from(FORMATS), st.sampled_from([0, 1]))
def test_what_is_written_reads_back(tmp_path_factory, sentences, form, base) -> None:
    path = tmp_path_factory.mktemp("links") / "links.txt"
    write_links(path, sentences, format=form, base=base)
    if not path.read_bytes().strip():
        return  # a NAACL file of no links has no lines; a Pharaoh file of none only ends
    read = read_links(path, format=form, base=base).sentences
    # The NAACL format cannot say that the last sentences have no links.
    assert read == tuple(sentences[: len(read)])
    assert not any(gold.possible for gold in sentences[len(read) :])
    whole = read_links(path, format=form, base=base, sentences=len(sentences))
    assert whole.sentences == tuple(sentences)


def test_all_marks_of_possible_links_are_read(tmp_path: Path) -> None:
    read = read_links(written(tmp_path, "0-0 1p2 3?4 5-6-P 7-8-S\n"))
    assert read.sentences == (Gold.of([(0, 0), (7, 8)], [(1, 2), (3, 4), (5, 6)]),)
    assert read.format == "pharaoh"


def test_an_empty_line_is_a_sentence_without_links(tmp_path: Path) -> None:
    read = read_links(written(tmp_path, "0-0\n\n1-1\n"))
    assert [len(gold.sure) for gold in read.sentences] == [1, 0, 1]


def test_a_naacl_file_is_known_by_its_lines_and_counts_from_one(tmp_path: Path) -> None:
    read = read_links(written(tmp_path, "1 1 1\n1 2 3 P\n3 1 2 S 0.75\n"))
    assert read.format == "naacl"
    assert read.sentences == (Gold.of([(0, 0)], [(1, 2)]), Gold.of([]), Gold.of([(0, 1)]))
    assert read.guessed == "the NAACL format counts from 1"


def test_confidences_are_read_and_written_to_the_last_digit(tmp_path: Path) -> None:
    path = written(tmp_path, "1 1 1 S 0.1\n1 2 3 P 1e-3\n1 2 4\n3 1 2 .75\n3 0 2 0.5\n")
    read = read_links(path)
    assert read.confidences == ({(0, 0): 0.1, (1, 2): 0.001}, {}, {(0, 1): 0.75})
    out = tmp_path / "out"
    write_links(out, read.sentences, format="naacl", confidences=read.confidences)
    assert out.read_text() == "1 1 1 S 0.1\n1 2 3 P 0.001\n1 2 4 S\n3 1 2 S 0.75\n"
    assert read_links(out).confidences == read.confidences


def test_confidences_follow_links_of_which_the_target_is_written_first(tmp_path: Path) -> None:
    read = read_links(written(tmp_path, "1 2 5 S 0.25\n"), target_first=True)
    assert read.confidences == ({(4, 1): 0.25},)


@pytest.mark.parametrize(
    ("text", "form", "sentences"),
    [("1 1 1\n3 1 1\n", "naacl", 2), ("0-0\n\n", "pharaoh", 3), ("0-0\n\n", "pharaoh", 1)],
)
def test_another_number_of_sentences_than_was_said_is_refused(
    tmp_path: Path, text: str, form: Format, sentences: int
) -> None:
    with pytest.raises(InputError, match=f"(?s)another number.*expected  {sentences} "):
        read_links(written(tmp_path, text), format=form, sentences=sentences)


def test_links_to_the_empty_word_are_left_out(tmp_path: Path) -> None:
    read = read_links(written(tmp_path, "1 0 1\n1 2 0\n1 2 1\n"))
    assert read.sentences == (Gold.of([(1, 0)]),)


def test_a_file_without_a_zero_counts_from_one_and_says_so(tmp_path: Path) -> None:
    read = read_links(written(tmp_path, "1-1 2-3\n" * 23))
    assert (read.base, read.sentences[0]) == (1, Gold.of([(0, 0), (1, 2)]))
    assert read.guessed == "counts from 1: no position is 0 in 23 sentences"


def test_a_short_file_without_a_zero_is_not_guessed_at(tmp_path: Path) -> None:
    path = written(tmp_path, "1-1 2-3\n")
    with pytest.raises(InputError) as error:
        read_links(path)
    assert str(error.value) == (
        f"{path}: it cannot be told whether the file counts from 0 or from 1\n"
        "  expected  the base to be given\n"
        "  got       no position 0 in 1 sentences, which are too few to conclude from\n"
        "  help      give base 0 or base 1 (on the command line --base, of gold --gold-base)"
    )


def test_a_zero_in_a_file_that_was_said_to_count_from_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="line 2: position 0 in a file that counts from 1"):
        read_links(written(tmp_path, "1-1\n3-0\n"), base=1)


def test_a_file_of_the_other_direction_is_turned(tmp_path: Path) -> None:
    read = read_links(written(tmp_path, "0-5 2-1\n"), target_first=True)
    assert read.links() == (frozenset({(5, 0), (1, 2)}),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0-0 1:1\n", "line 1: '1:1' is no link"),
        ("0-0\n0-0 -1-2\n", "line 2: '-1-2' is no link"),
        ("0-0 1-\n", "line 1: '1-' is no link"),
        ("0-0 1.5-2\n", r"line 1: '1.5-2' is no link"),
        ("0-0 nan-2\n", "line 1: 'nan-2' is no link"),
        ("0-0 1-2-Q\n", "line 1: '1-2-Q' is no link"),
        ("0-0 12345678901-2\n", "line 1: '12345678901-2' is no link"),
        (b"0-0\n0-0 \xff\n", "line 2: the text is not UTF-8"),
        ("", "the file is empty"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, text, said) -> None:
    with pytest.raises(InputError, match=said):
        read_links(written(tmp_path, text))


@pytest.mark.parametrize("line", ["1 2", "0 1 1", "1 1 1 X", "1 a 1", "99999999 1 1"])
def test_a_malformed_naacl_line_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(InputError, match="line 2: this is no link of the NAACL format"):
        read_links(written(tmp_path, f"1 1 1\n{line}\n"), format="naacl")


def test_a_missing_file_and_a_directory_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_links(tmp_path / "nothing")
    with pytest.raises(InputError, match="this is a directory"):
        read_links(tmp_path)


def test_a_link_outside_its_sentence_names_the_line_and_the_likely_reason(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, "0-0 1-4\n")
    with pytest.raises(InputError) as error:
        read_links(path, sizes=[(5, 3)])
    assert str(error.value) == (
        f"{path}, line 1: a link is outside its sentence\n"
        "  expected  source from 0 to 4, target from 0 to 2\n"
        "  got       1-4\n"
        "  because   sentence 1 has 5 source and 3 target words\n"
        "  help      as target-source counted from 0 every link is inside: give base 0 and "
        "exchange the sides"
    )


def test_links_for_more_sentences_than_there_are_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="links for more sentences than there are"):
        read_links(written(tmp_path, "0-0\n0-0\n"), sizes=[(2, 3)])


def test_a_base_that_is_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`base` is refused"):
        read_links(written(tmp_path, "0-0\n"), base=2)
