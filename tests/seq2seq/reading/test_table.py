import gzip

import pytest

from regard.errors import InputError
from regard.seq2seq.pairs import Columns, read_pairs
from regard.seq2seq.reading.text import LONGEST_LINE


def test_csv_has_quotes_and_a_field_that_is_not_asked_for_may_hold_anything(write):
    path = write('note,word,"the form"\n"two\nlines, a\ttab",a,"A, ""b"""\n\nx,c,C\n', "d.csv")
    pairs = read_pairs(path, columns=Columns("word", "the form"))
    assert pairs.items == (("a", 'A, "b"'), ("c", "C"))


def test_the_name_or_the_caller_says_what_a_file_is(write):
    assert read_pairs(write("a,A\n", "d.CSV")).items == (("a", "A"),)
    assert read_pairs(write(gzip.compress(b"a,A\n"), "d.csv.gz")).items == (("a", "A"),)
    assert read_pairs(write("a\tA\n", "d.csv"), file_format="tsv").items == (("a", "A"),)
    assert read_pairs(write("a;A\n"), file_format="csv-semicolon").items == (("a", "A"),)
    quoted = write('"a ""b"""\tA\n')
    assert read_pairs(quoted).items == (('"a ""b"""', "A"),)
    assert read_pairs(quoted, file_format="tsv-quoted").items == (('a "b"', "A"),)
    with pytest.raises(InputError, match="file_format"):
        read_pairs(write("a\tA\n"), file_format="xls")


def test_windows_line_ends_and_a_byte_order_mark_are_dropped_from_csv(write):
    path = write(b'\xef\xbb\xbf"a","A"\r\n"b","B"\r\n', "d.csv")
    assert read_pairs(path).items == (("a", "A"), ("b", "B"))


BAD = {
    "a quote that is not closed": ('a,A\nb,"B\nc,C\n', ["line 2", "not closed"]),
    "a quote never closed": (
        'a,A\nb,"B\n' + "c,C\n" * (LONGEST_LINE // 3),
        ["line 2", "not closed"],
    ),
    "text behind a quote": ('a,A\n"b"x,B\n', ["line 2", "no CSV"]),
    "a tab in a field": ('a,A\nb,"B\tb"\n', ["line 2", "a tab inside a field"]),
    "a line end in a field": ('a,A\n\nb,"B\nb"\nc,C\n', ["line 3", "a line end inside"]),
    "another separator": ("a;A\n", ["line 1", "1 column, not 2", "csv-semicolon"]),
    "three columns": ("a,A,x\n", ["line 1", "3 columns, not 2"]),
    "an empty target": ('a,""\n', ["line 1", "the target is empty"]),
    "bad UTF-8 behind a quote": (b'a,A\n"b\xff",B\n', ["line 2", "0xff"]),
    "NUL": ("a,A\nb\0,B\n", ["line 2", "NUL"]),
}


@pytest.mark.parametrize("case", BAD, ids=str)
def test_what_is_no_pair_of_a_csv_file_is_refused_with_the_line(write, case):
    data, said = BAD[case]
    with pytest.raises(InputError) as caught:
        read_pairs(write(data, "d.csv"))
    for part in said:
        assert part in str(caught.value)


def test_a_tab_in_a_quoted_field_is_refused_in_tab_separated_text_too(write):
    path = write('"a\tb"\tA\n')
    with pytest.raises(InputError, match="line 1: a tab inside a field"):
        read_pairs(path, file_format="tsv-quoted")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (gzip.compress(b"a\tA\n", mtime=0), "the file is gzip"),
        (b"PK\x03\x04 and more", "a spreadsheet"),
        (b"\xfd7zXZ\0 and more", "the file is xz"),
    ],
    ids=["gzip", "zip", "xz"],
)
def test_a_file_of_another_kind_is_recognised(write, data, said):
    with pytest.raises(InputError, match=f"line 1: .*{said}"):
        read_pairs(write(data))
