import json

import pytest

from regard.errors import InputError
from regard.seq2seq.pairs import Columns, read_pairs


def _lines(*forms) -> str:
    return "".join(json.dumps(form) + "\n" for form in forms)


def test_objects_are_pairs_and_a_list_of_targets_is_several_references(write):
    path = write(
        _lines({"target": "A", "source": "a", "id": 7}, {"source": "b", "target": ["B", "C"]})
        + "\n \n",
        "d.jsonl",
    )
    assert read_pairs(path).items == (("a", "A"), ("b", "B"), ("b", "C"))


def test_keys_can_be_chosen_and_features_are_a_text_or_a_list(write):
    forms = [{"l": "a", "f": "A", "m": "N;PL"}, {"l": "b", "f": "B", "m": ["V", "PST"]}]
    pairs = read_pairs(write(_lines(*forms), "d.ndjson"), columns=Columns("l", "f", "m"))
    assert pairs.items == (("a\tN;PL", "A"), ("b\tV;PST", "B"))


GOOD = '{"source": "a", "target": "A"}\n'
BAD = {
    "a key twice": (
        '{"source": "a", "source": "z", "target": "A"}',
        ["the key 'source' is there more than once", "each key once"],
    ),
    "a missing key": ('{"source": "a"}', ["no key 'target'", "'source'"]),
    "no keys": ("{}", ["no key 'source'"]),
    "a number": ('{"source": 1, "target": "A"}', ["'source' has the wrong type", "1"]),
    "null": ('{"source": "a", "target": null}', ["'target' has the wrong type", "null"]),
    "a list of nulls": ('{"source": "a", "target": ["A", null]}', ["wrong type", "null"]),
    "a list as source": ('{"source": ["a"], "target": "A"}', ["'source' has the wrong"]),
    "an empty list": ('{"source": "a", "target": []}', ["the target is empty"]),
    "an empty text": ('{"source": " ", "target": "A"}', ["the source is empty"]),
    "an array": ('["a", "A"]', ["no JSON object", "jq"]),
    "a text": ('"a"', ["no JSON object"]),
    "no JSON": ("a\tA", ["no JSON"]),
    "pretty printed": ("{", ["split over lines", "jq"]),
    "deep": ("[" * 20_000, ["no JSON"]),
    "a long number": ('{"source": ' + "1" * 5000 + "}", ["no JSON"]),
    "half a character": (r'{"source": "\ud800", "target": "A"}', ["surrogate"]),
    "a tab": (r'{"source": "a\tb", "target": "A"}', ["a tab inside"]),
    "a line end": (r'{"source": "a", "target": "A\nB"}', ["a line end inside"]),
    "NUL": (r'{"source": "a", "target": "A\u0000"}', ["a NUL inside"]),
}


@pytest.mark.parametrize("case", BAD, ids=str)
def test_what_is_no_pair_is_refused_with_its_line(write, case):
    line, said = BAD[case]
    path = write(GOOD + line + "\n" + GOOD, "d.jsonl")
    with pytest.raises(InputError) as caught:
        read_pairs(path)
    for part in [f"{path}, line 2: ", "expected", "got", *said]:
        assert part in str(caught.value)


@pytest.mark.parametrize("columns", [Columns(source=1), Columns(header=False)])
def test_numbers_and_headers_do_not_go_with_objects(write, columns):
    with pytest.raises(InputError, match="do not go with JSONL"):
        read_pairs(write(GOOD, "d.jsonl"), columns=columns)
