import gzip
import json

import pytest

from regard.errors import InputError
from regard.seq2seq.inspection.finding import Place
from regard.seq2seq.inspection.inspect import inspect
from regard.seq2seq.inspection.render import as_text
from regard.seq2seq.inspection.survey import Layout
from regard.seq2seq.pairs import Columns
from regard.seq2seq.reading.text import LONGEST_LINE


@pytest.fixture
def write(tmp_path):
    def write(data: bytes | str, name: str = "train.tsv"):
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return write


def _good(count: int = 23) -> str:
    """Pairs in which every symbol is in several lines, and nothing is odd."""
    return "".join(f"{i:05b}ab\t{i:05b}AB\n" for i in range(count))


def _codes(report) -> dict[str, list[int]]:
    return {f.code: [place.line for place in f.places] for f in report.findings}


def test_good_data_are_clean(write):
    report = inspect(write(_good()))
    assert report.findings == ()
    assert report.clean
    (summary,) = report.files
    assert (summary.pairs, summary.sources, summary.refused) == (23, 23, 0)
    assert (summary.source_symbols, summary.longest_source) == (4, 7)


LINES = {
    "no tab": (b"abAB", "columns"),
    "two tabs": (b"ab\tAB\tx", "columns"),
    "no source": (b"\tAB", "empty-source"),
    "no target": (b"ab\t ", "empty-target"),
    "bad UTF-8": (b"a\xff\tAB", "encoding"),
    "NUL": (b"a\0\tAB", "nul"),
    "carriage return": (b"a\rb\tAB", "carriage-return"),
    "a huge line": (b"ab\t" + b"A" * LONGEST_LINE, "too-long"),
    "a line of several buffers": (b"ab\t" + b"A" * (3 * LONGEST_LINE + 7), "too-long"),
    "no writing": (("a" + "\u0301" * 1001 + "\tAB").encode(), "marks"),
    "space in front": (b" 0ab\t0AB", "edge-space"),
    "space behind": (b"0ab\t0AB ", "edge-space"),
    "two spaces": (b"0a  b\t0AB", "double-space"),
    "invisible": ("0a\u200bb\t0AB".encode(), "invisible"),
    "control": (b"0a\x1bb\t0AB", "invisible"),
    "no-break space": ("0a\u00a0b\t0AB".encode(), "odd-space"),
    "misread": ("0a\u00c3\u00a9\t0AB".encode(), "misread"),
    "a missing value": (b"0ab\tNULL", "missing"),
    "an entity": (b"0ab &#39;\t0AB", "entity"),
    "quotes of CSV": (b'"0a ""b"""\t0AB', "csv-quotes"),
    "two scripts in a word": ("0\u0430b\t0AB".encode(), "mixed-script"),
    "no normal form": ("0a\u00e9e\u0301\t0AB".encode(), "normal-form"),
    "a symbol once": (b"0az\t0AB", "rare-symbol"),
    "a repeated pair": (b"00011ab\t00011AB", "duplicate"),
    "another target": (b"00011ab\t00011BA", "several-targets"),
    "a long target": (b"01ab\t01ABABABABABABABABABAB", "odd-ratio"),
    "overlong": (b"01ab" * 19 + b"\t" + b"01AB" * 19, "overlong-source"),
}


@pytest.mark.parametrize("case", LINES, ids=str)
def test_each_oddity_is_found_in_its_line(write, case):
    line, code = LINES[case]
    data = _good().encode().splitlines(keepends=True)
    data.insert(17, line + b"\n")
    report = inspect(write(b"".join(data)))
    assert _codes(report)[code] == [18]
    assert report.files[0].pairs + report.files[0].refused == 24
    text = as_text(report)
    assert "line 18" in text
    assert text.count("  help  ") == len(report.findings)


def test_reading_goes_on_behind_bad_lines_and_all_are_counted(write):
    bad = ["x\n", "\tA\n", "ab\t\n"] * 7
    data = "".join(b + g for b, g in zip(bad, _good(21).splitlines(keepends=True), strict=True))
    report = inspect(write(data), layout=Layout(limit=2))
    assert report.files[0].pairs == 21
    found = {f.code: (f.count, [p.line for p in f.places]) for f in report.findings}
    assert found == {
        "columns": (7, [1, 7]),
        "empty-source": (7, [3, 9]),
        "empty-target": (7, [5, 11]),
    }
    assert "and 5 more" in as_text(report)


def test_a_repeat_names_the_first_line_and_a_contradiction_both_targets(write):
    data = "a\tA\nb\tB\na\tA\na\tC\na\tA\nb\tB\na\tC\n"
    report = inspect(write(data))
    places = {f.code: f.places for f in report.findings}
    assert [(p.line, p.other) for p in places["duplicate"]] == [(3, 1), (5, 1), (6, 2), (7, 4)]
    assert places["several-targets"] == (Place(4, "'a' -> 'C', and 'a' -> 'A'", 1),)


def test_what_files_share_is_found_with_both_lines(write):
    train = write(_good())
    dev = write("11111ab\t11111AB\n00010ab\t00010AB\n00011ab\t00011BA\n", "dev.tsv")
    test = write("11111ab\t11111AB\n", "test.tsv")
    report = inspect(train, dev=dev, test=test)
    found = {
        (f.code, f.file, p.other_file): [(q.line, q.other) for q in f.places]
        for f in report.findings
        for p in f.places
    }
    assert found == {
        ("leaked-pair", str(dev), str(train)): [(2, 3)],
        ("leaked-source", str(dev), str(train)): [(2, 3), (3, 4)],
        ("leaked-pair", str(test), str(dev)): [(1, 1)],
        ("leaked-source", str(test), str(dev)): [(1, 1)],
    }


def test_symbols_that_training_lacks_are_counted_the_most_frequent_first(write):
    train = write(_good())
    test = write("11111axy\t11110AB\n11111bx\t11111AB\n", "test.tsv")
    (unseen,) = (f for f in inspect(train, test=test).findings if f.code == "unseen-symbol")
    assert (unseen.count, unseen.file) == (2, str(test))
    assert unseen.places == (Place(1, "'x' in 2 lines"), Place(1, "'y' in 1 line"))


def test_symbols_are_those_that_training_would_use(write):
    train = write("".join(f"{i:05b}\tAA BB\n" for i in range(23)))
    test = write("11111\tAA B\n", "test.tsv")
    layout = Layout(target_symbols="spaces")
    (unseen,) = (
        f for f in inspect(train, test=test, layout=layout).findings if "unseen" in f.code
    )
    assert [p.text for p in unseen.places] == ["'B' in 1 line"]


def test_two_spellings_of_a_letter_are_one_text_unless_no_form_is_asked_for(write):
    path = write(_good() + "\u00e90\t1A\ne\u03010\t1A\n")
    found = {f.code: f.level for f in inspect(path).findings}
    assert found["duplicate"] == "warning"
    assert found["normal-form"] == "note"
    found = {f.code: f.level for f in inspect(path, layout=Layout(normal_form="none")).findings}
    assert "duplicate" not in found
    assert found["normal-form"] == "warning"


def test_a_file_that_is_in_form_d_throughout_is_not_mixed(write):
    path = write(_good().replace("a", "e\u0301").replace("A", "E\u0301"))
    assert "normal-form" not in _codes(inspect(path))


def test_a_few_lines_in_another_script_stand_out_and_many_do_not(write):
    lines = [f"{i:07b}ab\t{i:07b}AB\n" for i in range(127)]
    lines[30] = "0\u0436\t0AB\n"
    assert _codes(inspect(write("".join(lines))))["foreign-script"] == [31]
    lines[40:42] = ["0\u0436\t0AB\n"] * 2  # three of 127 are more than one in a hundred
    assert "foreign-script" not in _codes(inspect(write("".join(lines))))


def test_a_feature_is_no_text_and_an_unseen_one_is_reported(write):
    data = "".join(f"{i:05b}a\tN;  PL\t{i:05b}A\n" for i in range(23))
    train, dev = write(data), write("11111a\tN;DU\t11111A\n", "dev.tsv")
    layout = Layout(columns=Columns(target=3, features=2))
    report = inspect(train, dev=dev, layout=layout)
    (unseen,) = report.findings
    assert [p.text for p in unseen.places] == ["the feature 'DU' in 1 line"]
    assert report.files[0].longest_source == 6 + 2


def test_csv_and_jsonl_are_read_on_behind_bad_records(write):
    csv = write('a,A\n"b"x,B\nc,"C\nd"\ne,E\n', "d.csv")
    codes = _codes(inspect(csv))
    assert (codes["csv"], codes["character"]) == ([2], [3])
    jsonl = write('{"source": "a", "target": "A"}\n{"source": 1}\n[]\n', "d.jsonl")
    codes = _codes(inspect(jsonl))
    assert (codes["type"], codes["json"]) == ([2], [3])


def test_a_first_line_that_looks_like_a_header_is_a_finding(write):
    report = inspect(write("source\ttarget\n" + _good()))
    assert _codes(report) == {"header": [1]}


def test_what_could_be_read_of_a_damaged_file_is_reported(write):
    packed = gzip.compress(_good(2_300).encode())
    report = inspect(write(packed[:-50], "train.tsv.gz"))
    (damaged,) = (f for f in report.findings if f.code == "damaged")
    assert damaged.places[0].line == report.files[0].pairs + 1 > 1


@pytest.mark.parametrize(
    ("data", "said"),
    [(b"", "no pair"), ("a\tA\n".encode("utf-16"), "UTF-16"), (b"\n\n", "no pair")],
)
def test_a_file_of_which_nothing_can_be_read_is_an_error(write, data, said):
    with pytest.raises(InputError, match=said):
        inspect(write(data))


def test_the_report_is_json(write):
    path = write("a\tA\na\tA\nx\n")
    form = json.loads(json.dumps(inspect(path).to_json()))
    assert form["clean"] is False
    assert form["files"][0]["role"] == "train"
    (duplicate,) = (f for f in form["findings"] if f["code"] == "duplicate")
    assert duplicate["places"] == [{"line": 2, "text": "'a' -> 'A'", "other": 1}]
