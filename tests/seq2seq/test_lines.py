import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import InputError
from regard.seq2seq.lines import read_lines
from regard.seq2seq.pairs import LONGEST_LINE


def _all(data: bytes) -> list[str]:
    return [line for chunk in read_lines(io.BytesIO(data), "in") for line in chunk]


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\n\nb", ["a", "", "b"]),
        (b"\xef\xbb\xbfa\r\nb\r\n", ["a", "b"]),
        ("\u00e9\u2028x\n".encode(), ["\u00e9\u2028x"]),
    ],
)
def test_lines_come_without_their_ends(data, lines):
    assert _all(data) == lines


def test_a_long_input_comes_whole():
    words = [f"w{i}" * (i % 97) for i in range(5003)]
    assert _all("\n".join(words).encode()) == words


def test_a_line_is_yielded_before_the_next_one_is_written():
    reading, writing = os.pipe()
    with open(reading, "rb") as stream:
        chunks = read_lines(stream, "in")
        for line in ("one", "two"):
            os.write(writing, f"{line}\n".encode())
            assert next(chunks) == [line]
        os.write(writing, b"three")
        os.close(writing)
        assert list(chunks) == [["three"]]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a\nb\xff\nc\n", "in, line 2(.|\n)*0xff at byte 1"),
        (b"a\nb\0\n", "in, line 2(.|\n)*NUL"),
        (b"a\n" + b"x" * (LONGEST_LINE + 1), "in, line 2(.|\n)*too long"),
        (b"a\n" + ("e" + "\u0301" * 1001).encode(), "in, line 2(.|\n)*too many marks"),
    ],
)
def test_a_bad_line_is_named_and_those_before_it_are_yielded_first(data, said):
    chunks = read_lines(io.BytesIO(data), "in")
    assert next(chunks) == ["a"]
    with pytest.raises(InputError, match=said):
        next(chunks)


@given(st.binary(max_size=100))
def test_any_bytes_are_lines_or_an_input_error(data):
    try:
        lines = _all(data)
    except InputError:
        return
    assert all("\n" not in line and "\0" not in line for line in lines)
