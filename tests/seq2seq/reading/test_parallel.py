import pytest

from regard.errors import InputError
from regard.seq2seq.pairs import Columns
from regard.seq2seq.reading.parallel import read_parallel


def read(tmp_path, text, name="pairs.tsv", **options):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return [tuple(one) for one in read_parallel(path, **options)]


def test_every_line_has_an_entry_also_those_without_a_sentence(tmp_path):
    found = read(tmp_path, "a b\tc\n\nd\t\n\te\n \t \nf\tg\n\n")
    empty = [(line, "", "") for line in (2, 3, 4, 5)]
    assert found == [(1, "a b", "c"), *empty, (6, "f", "g"), (7, "", "")]


def test_bars_are_read_as_tabs(tmp_path):
    found = read(tmp_path, "a b ||| c\n ||| \n\nd ||| e f\n")
    assert found == [(1, "a b", "c"), (2, "", ""), (3, "", ""), (4, "d", "e f")]


def test_other_formats_keep_their_places(tmp_path):
    lines = '{"source": "a", "target": "b"}\n\n{"source": "", "target": "c"}\n'
    assert read(tmp_path, lines, "p.jsonl") == [(1, "a", "b"), (2, "", ""), (3, "", "")]
    table = 'x,y\n"a\nb",c\n'
    with pytest.raises(InputError, match="a line end inside a field"):
        read(tmp_path, table, "p.csv", columns=Columns(header=True))
    found = read(tmp_path, "x,y\na,c\n,d\n", "p.csv", columns=Columns(source="x", target="y"))
    assert found == [(2, "a", "c"), (3, "", "")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no sentence pair"),
        ("\n\n", "2 lines with an empty side"),
        ("a\tb\nc\n", "line 2: 1 column, not 2"),
        ("a ||| b ||| c\n", "line 1: 3 columns, not 2"),
        ("a\tb\n\0\tc\n", "line 2: a NUL byte"),
    ],
)
def test_what_is_no_text_of_pairs_is_told_by_its_line(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        read(tmp_path, text)


def test_several_targets_are_refused(tmp_path):
    with pytest.raises(InputError, match="line 1: there are several targets"):
        read(tmp_path, '{"source": "a", "target": ["b", "c"]}\n', "p.jsonl")
