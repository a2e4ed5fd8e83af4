import gzip
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import InputError
from regard.seq2seq.pairs import LONGEST_LINE, Pairs, read_pairs


@pytest.fixture
def write(tmp_path):
    def write(data: bytes, name: str = "data.tsv"):
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


def test_lines_become_pairs_in_their_order(write):
    pairs = read_pairs(write(b"b\tB\na\tA 1\na\tA 2\n"))
    assert pairs.items == (("b", "B"), ("a", "A 1"), ("a", "A 2"))
    assert pairs.references() == {"b": ("B",), "a": ("A 1", "A 2")}


def test_a_pair_listed_twice_is_one_reference():
    assert Pairs((("a", "A"), ("a", "A"))).references() == {"a": ("A",)}


def test_a_gzip_file_reads_like_the_plain_one_and_has_its_sha256(write):
    data = "k\u00e4se\tcheese\n".encode()
    plain, packed = read_pairs(write(data)), read_pairs(write(gzip.compress(data), "d.tsv.gz"))
    assert plain.items == packed.items == (("k\u00e4se", "cheese"),)
    assert plain.sha256 == packed.sha256 == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize(
    "data",
    [
        b"\xef\xbb\xbfa\tA\nb\tB\n",
        b"a\tA\r\nb\tB\r\n",
        b"a\tA\nb\tB",
        b"\na\tA\n\n\nb\tB\n\n",
    ],
    ids=["byte order mark", "Windows line ends", "no last line end", "empty lines"],
)
def test_harmless_differences_of_form_are_dropped(write, data):
    assert read_pairs(write(data)).items == (("a", "A"), ("b", "B"))


def test_characters_that_only_look_like_line_ends_stay(write):
    data = "a\u2028b\x0bc\x85\tA\n".encode()
    assert read_pairs(write(data)).items == (("a\u2028b\x0bc\x85", "A"),)


def test_two_spellings_of_one_letter_make_one_source_unless_nfc_is_off(write):
    path = write("\u00e9\tA\ne\u0301\tB\n".encode())
    assert read_pairs(path).references() == {"\u00e9": ("A", "B")}
    assert len(read_pairs(path, nfc=False).references()) == 2


BAD = {
    "empty": (b"", ["there is no pair"]),
    "only line ends": (b"\n\r\n\n", ["there is no pair"]),
    "one column": (b"a\tA\nbB\n", ["line 2", "1 column, not 2", "'bB'", "one tab"]),
    "three columns": (b"a\tA\tx\n", ["line 1", "3 columns, not 2", "cut -f1,2"]),
    "empty source": (b"a\tA\n\tB\n", ["line 2", "the source is empty"]),
    "empty target": (b"a\tA\nb\t \n", ["line 2", "the target is empty"]),
    "bad UTF-8": (b"a\tA\nbc\xff\tB\n", ["line 2", "0xff at byte 2", "UTF-8"]),
    "cut UTF-8": (b"a\t\xc3", ["line 1", "0xc3 at byte 2"]),
    "UTF-16": ("a\tA\n".encode("utf-16"), ["line 1", "UTF-16"]),
    "NUL": (b"a\tA\nb\0\tB\n", ["line 2", "NUL", "character 1"]),
    "marks": (("a\tA\ne" + "\u0301\u0323" * 501).encode(), ["line 2", "too many marks"]),
    "old Mac line ends": (b"a\tA\rb\tB\r", ["line 1", "carriage return"]),
    "too long": (b"a\tA\n" + b"x" * (LONGEST_LINE + 1), ["line 2", "too long", "100,000"]),
}


@pytest.mark.parametrize("case", BAD, ids=str)
def test_what_is_no_pair_is_refused_with_its_file_and_line(write, case):
    data, said = BAD[case]
    path = write(data)
    with pytest.raises(InputError) as caught:
        read_pairs(path)
    for part in [str(path), "expected", "got", *said]:
        assert part in str(caught.value)


def test_the_longest_allowed_line_is_read(write):
    line = b"x" * (LONGEST_LINE - 3) + b"\tA\n"
    assert len(line) == LONGEST_LINE
    assert len(read_pairs(write(line))) == 1


def test_a_long_line_with_many_marks_on_many_letters_is_read(write):
    line = "e\u0301\u0323" * 2003
    assert len(read_pairs(write(f"{line}\tA\n".encode()))) == 1


def test_a_missing_file_a_directory_and_an_unreadable_path_are_refused(tmp_path, write):
    for path, said in (
        (tmp_path / "nothing.tsv", "no such file"),
        (tmp_path, "directory"),
        (write(b"a\tA\n") / "below", "cannot be read"),
    ):
        with pytest.raises(InputError, match=said):
            read_pairs(path)


def test_a_damaged_gzip_file_is_refused(write):
    whole = gzip.compress(b"a\tA\n" * 1000, mtime=0)
    for name, data in {
        "cut.gz": whole[:-9],
        "cut-early.gz": whole[:12],
        "text.gz": b"a\tA\n",
        "flipped.gz": whole[:20] + bytes([whole[20] ^ 255]) + whole[21:],
    }.items():
        with pytest.raises(InputError, match=r"damaged|no pair"):
            read_pairs(write(data, name))


@given(
    st.binary(max_size=200)
    | st.text(alphabet="a\t\n\r\0\ufeff\u00e9", max_size=40).map(str.encode)
)
def test_any_bytes_are_pairs_or_an_input_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "data.tsv"
    path.write_bytes(data)
    try:
        pairs = read_pairs(path)
    except InputError:
        return
    assert all(s.strip() and t.strip() and "\t" not in s + t for s, t in pairs.items)


@given(st.binary(min_size=1, max_size=60))
def test_any_bytes_named_gz_are_pairs_or_an_input_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("fuzz") / "data.gz"
    path.write_bytes(data)
    with pytest.raises(InputError):
        read_pairs(path)


def _numbered(count: int) -> Pairs:
    return Pairs(tuple((f"s{i % (count // 2)}", f"t{i}") for i in range(count)))


def test_no_source_is_on_both_sides_of_a_split_and_none_is_lost():
    pairs = _numbered(46)
    kept, held = pairs.split(7, seed=5)
    assert len(held.references()) == 7
    assert not kept.references().keys() & held.references().keys()
    assert sorted(kept.items + held.items) == sorted(pairs.items)


def test_a_split_depends_on_the_seed_and_not_on_the_order_of_lines():
    pairs = _numbered(46)
    turned = Pairs(pairs.items[::-1])
    _, held = pairs.split(7, seed=5)
    assert set(turned.split(7, seed=5)[1].items) == set(held.items)
    assert set(pairs.split(7, seed=6)[1].items) != set(held.items)


@pytest.mark.parametrize("count", [0, 23, 24, -1])
def test_a_split_that_leaves_a_side_empty_is_refused(count):
    with pytest.raises(InputError, match="from 1 to 22"):
        _numbered(46).split(count)
