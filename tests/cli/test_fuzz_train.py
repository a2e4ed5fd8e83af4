"""Files as they come: each trains for two steps, or gives one clear error that says where.

``REGARD_FUZZ=100 pytest tests/cli/test_fuzz_train.py`` tries a hundred of them.
"""

import gzip
import os
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from regard.cli.main import run

EXAMPLES = int(os.environ.get("REGARD_FUZZ", "15"))
TINY = ("--hidden", "7", "--state", "11", "--steps", "2", "--batch-tokens", "211")

# What files of words have, and what they should not have.
_PLAIN = st.text("abcäßж ", min_size=1, max_size=7)
_ODD = st.sampled_from(
    [
        "",
        " ",
        "\N{RIGHT-TO-LEFT MARK}שלום",
        "e\N{COMBINING ACUTE ACCENT}\N{COMBINING CEDILLA}",
        "\N{COMBINING ACUTE ACCENT}",
        "\N{ZERO WIDTH SPACE}",
        "\N{LINE SEPARATOR}x",
        "\N{NO-BREAK SPACE}",
        "👩‍👩‍👧",
        "\x00",
        "\r",
        "\x1b[31m",
        '"quoted',
        "<pad>",
        "x" * 3001,
        "�",
    ]
)
_FIELD = st.one_of(_PLAIN, _PLAIN, _PLAIN, _PLAIN, _PLAIN, _PLAIN, _ODD, st.text(max_size=5))
_GOOD = st.tuples(_PLAIN, _PLAIN).map("\t".join)
_LINE = st.one_of(_GOOD, _GOOD, _GOOD, st.lists(_FIELD, min_size=0, max_size=4).map("\t".join))
_ENCODING = st.sampled_from(["utf-8"] * 17 + ["utf-8-sig", "utf-16", "utf-32", "latin-1"])
_END = st.sampled_from(["\n"] * 7 + ["\r\n", "\r"])


@st.composite
def files(draw) -> bytes:
    """Draw a file of pairs, more or less."""
    good = draw(st.lists(_GOOD, min_size=draw(st.sampled_from([0, 5])), max_size=9))
    lines = good if draw(st.booleans()) else [*good, *draw(st.lists(_LINE, max_size=5))]
    text = draw(_END).join(draw(st.permutations(lines))) + draw(st.sampled_from(["\n", ""]))
    data = text.encode(draw(_ENCODING), "replace")
    if draw(st.sampled_from([False] * 5 + [True])):
        place = draw(st.integers(0, len(data)))
        data = data[:place] + draw(st.binary(min_size=1, max_size=5)) + data[place:]
    if draw(st.sampled_from([False] * 15 + [True])):
        data += b"y" * 200_000
    return data


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    data=files(),
    name=st.sampled_from(["d.tsv", "d.txt", "d.tsv", "d.tsv", "d.csv", "d.tsv.gz"]),
)
def test_a_file_trains_or_is_one_error_that_names_file_and_line(capsys, data, name):
    with tempfile.TemporaryDirectory() as place:
        path, out = Path(place) / name, Path(place) / "m"
        data = gzip.compress(data, mtime=0) if name.endswith(".gz") else data
        path.write_bytes(data)
        capsys.readouterr()
        code = run(["train", str(path), "--out", str(out), *TINY])
        said = capsys.readouterr()
        assert path.read_bytes() == data
        assert "Traceback" not in said.err + said.out
        event("trained" if code == 0 else said.err.splitlines()[0].rpartition(": ")[2][:40])
        if code == 0:
            assert (out / "model.safetensors").is_file()
            assert "symbol error rate" in said.out
            assert run(["eval", str(out), str(path)]) == 0
            return
        assert code == 2, said.err
        assert said.out == ""
        assert said.err.count("error: ") == 1
        assert said.err.startswith(f"error: {path}")
        # A file that has too little in it has no line to blame.
        whole = "there is no pair", "cannot hold out", "there is one source", "compressed file"
        first = said.err.splitlines()[0]
        assert re.search(r", line \d+", first) or any(words in first for words in whole), first
        assert all(c.isprintable() or c == "\n" for c in said.err), repr(said.err)
        assert sorted(os.listdir(place)) == [name]
