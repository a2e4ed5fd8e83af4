"""A hundred generated files of pairs: each is read, or refused with one error and its line."""

import gzip
import json
import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from regard.errors import InputError
from regard.seq2seq.inspection.inspect import inspect
from regard.seq2seq.inspection.render import as_text
from regard.seq2seq.inspection.survey import Layout
from regard.seq2seq.pairs import LONGEST_LINE, Columns, read_pairs
from regard.seq2seq.vocab import UNK, Vocab

HUNDRED = settings(max_examples=100, deadline=None)

LETTERS = (
    "ab c\u00e9e\u0301\u0436\u4e2d\u05d0\u0628\u0651\u064e\u202e\u200b\u200d\U0001f469\ufeff"
)
WORDS = st.text(alphabet=LETTERS, min_size=1, max_size=7).map("x".__add__)
ODD_WORDS = st.text(max_size=5) | st.sampled_from(
    [
        "",
        " ",
        "\u00a0",
        "\u3000",
        '"',
        '"a',
        "a,b",
        "=1+1",
        "NULL",
        "\\N",
        "a\tb",
        "a\nb",
        "\0",
        "\r",
    ]
)
ENDS = st.sampled_from(["\n"] * 5 + ["\r\n", "\r", "\n\n", "\u2028", ""])
ENCODINGS = st.sampled_from(
    ["utf-8"] * 13 + ["utf-8-sig", "latin-1", "utf-16", "utf-16-le", "utf-32", "cp1252"]
)
HUGE = st.sampled_from([b"x" * (LONGEST_LINE + 1), b"a\t" + b"y" * (LONGEST_LINE - 3) + b"\n"])
COLUMNS = st.sampled_from(
    [
        (2, Columns()),
        (2, Columns(header=False)),
        (2, Columns("a", "b")),
        (3, Columns()),
        (3, Columns(target=(2, 3))),
        (3, Columns(features=3)),
        (3, Columns(3, 1)),
    ]
)
SEPARATORS = {"d.tsv": "\t", "d": "\t", "d.csv": ",", "d.tsv.gz": "\t", "d.jsonl": None}


@st.composite
def files(draw) -> tuple[str, bytes, Columns]:
    """Lines of pairs, in some format and encoding, often with something odd somewhere."""
    name = draw(st.sampled_from(["d.tsv", "d.tsv", *SEPARATORS]))
    width, columns = draw(COLUMNS)
    words = WORDS if draw(st.booleans()) else WORDS | WORDS | WORDS | ODD_WORDS
    rows = draw(st.lists(st.lists(words, min_size=width, max_size=width), max_size=13))
    end = draw(ENDS)
    if name == "d.jsonl":
        columns = draw(st.sampled_from([columns] + [Columns()] * 5))
        lines = [json.dumps({"source": row[0], "target": row[1]}) for row in rows]
    else:
        named = [["a", "b", "c"][:width]] if columns.named else []
        lines = [SEPARATORS[name].join(row) for row in named + rows]
    data = end.join([*lines, ""]).encode(draw(ENCODINGS), "replace")
    odd = draw(st.none() | st.none() | st.none() | HUGE | st.binary(min_size=1, max_size=5))
    if odd is not None:
        place = draw(st.integers(0, len(data)))
        data = data[:place] + odd + data[place:]
    if name.endswith(".gz"):
        data = gzip.compress(data, mtime=0)[: draw(st.sampled_from([None, None, None, -3, 15]))]
    return name, data, columns


ONE_ERROR = re.compile(r"[^\n]+\n  expected  (.|\n)+\n  got  (.|\n)*")


@HUNDRED
@given(files())
@example(("d.tsv", b"a\tA\n" + b"b" * (3 * LONGEST_LINE), Columns()))
@example(("d.tsv", ("a\tA\n" * 3).encode("utf-16"), Columns()))
@example(("d.csv", b'a,"A\n' * 3, Columns()))
@example(("d.tsv", "\u202e\u05d0\u0301\t\u0301\n".encode(), Columns()))
def test_a_file_is_read_or_refused_with_one_error_and_its_line(tmp_path_factory, file):
    name, data, columns = file
    path = tmp_path_factory.mktemp("fuzz") / name
    path.write_bytes(data)
    message = _said(lambda: read_pairs(path, columns=columns))
    if message is None:
        _usable(read_pairs(path, columns=columns))
    else:
        assert ONE_ERROR.fullmatch(message)
        where = r"(, line [1-9]\d*: |: there is no pair|: the columns do not go with)"
        assert re.match(re.escape(str(path)) + where, message)
    _inspected(path, columns)
    assert path.read_bytes() == data


def _said(act) -> str | None:
    try:
        act()
    except InputError as error:
        return str(error)
    return None


def _usable(pairs) -> None:
    """Every symbol of what was read gets an id, and the text comes back."""
    sources = Vocab.of((s for s, _ in pairs.items), kind="chars", features=pairs.features)
    targets = Vocab.of((t for _, t in pairs.items), kind="spaces")
    for source, target in pairs.items:
        assert source.count("\t") == pairs.features
        assert not set("\n\r\0") & set(source + target)
        assert "\t" not in target
        ids = sources.encode(source)
        assert ids
        assert UNK not in ids
        assert sources.decode(ids).partition("\t")[0] == source.partition("\t")[0]
        assert targets.encode(target)


def _inspected(path, columns) -> None:
    """The inspection counts all that reading accepts, and names every line it refuses."""
    layout = Layout(columns=columns, limit=1000)
    said = _said(lambda: read_pairs(path, columns=columns))
    message = _said(lambda: inspect(path, dev=path, layout=layout))
    if message is not None:
        assert said is not None
        assert ONE_ERROR.fullmatch(message)
        return
    report = inspect(path, dev=path, layout=layout)
    text = as_text(report)
    assert all(line.isprintable() for line in text.split("\n"))
    refused = [p.line for f in report.findings if f.level == "error" for p in f.places]
    line = re.search(r", line (\d+): ", said or "")
    if said is None:
        assert refused == []
        assert report.files[0].pairs == len(read_pairs(path, columns=columns))
    elif line is not None:
        assert min(refused) == int(line[1])
