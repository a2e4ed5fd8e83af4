import gzip
from pathlib import Path

import pytest

from regard.alignment.text_lines import text_lines
from regard.errors import InputError


def test_a_compressed_file_has_the_lines_of_the_plain_one(tmp_path: Path) -> None:
    plain, packed = tmp_path / "links", tmp_path / "links.gz"
    plain.write_bytes(b"\xef\xbb\xbf0-0 1-1\r\n\n2-3")
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert text_lines(packed) == text_lines(plain) == ["0-0 1-1", "", "2-3"]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("links.gz", gzip.compress(b"0-0\n" * 97, mtime=0)[:-11], "damaged or cut short"),
        ("links.gz", b"0-0\n", "damaged or cut short"),
        ("links", gzip.compress(b"0-0\n", mtime=0), "a name that ends in .gz"),
        ("links.gz", gzip.compress(b"", mtime=0), "the file is empty"),
        ("links.gz", gzip.compress(b"0-0\n\xff\n", mtime=0), "line 2: the text is not UTF-8"),
    ],
)
def test_what_is_no_whole_text_is_refused(tmp_path: Path, name, content, said) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=said):
        text_lines(tmp_path / name)
