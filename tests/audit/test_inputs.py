"""Files of inputs, erasures, and what is refused."""

import json

import pytest

from regard.audit.input_files import read_inputs
from regard.audit.inputs import Input, fingerprint
from regard.errors import InputError


def _file(tmp_path, *lines, name="data.jsonl"):
    path = tmp_path / name
    rows = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def test_erasing_keeps_fixed_and_marked_places_with_their_tokens():
    one = Input(tuple("abcde"), fixed=frozenset({0, 4}), gold=frozenset({2, 3}))
    left = one.without([1, 2])
    assert left.tokens == ("a", "d", "e")
    assert left.fixed == {0, 2}
    assert left.gold == {1}
    assert one.free == (1, 2, 3)
    assert one.with_tokens({1: "x", 3: "y"}).tokens == tuple("axcye")


def test_objects_texts_and_pairs_are_read(tmp_path):
    path = _file(
        tmp_path,
        {"tokens": ["good", "film"], "gold": [0], "label": 1},
        "",
        {"text": "a b  c", "fixed": [0]},
        {"source": "le chat", "target": "the cat", "links": [[0, 0], [1, 1]]},
    )
    first, second, *steps = read_inputs(path)
    assert first == Input(("good", "film"), gold=frozenset({0}), label="1")
    assert second == Input(("a", "b", "c"), fixed=frozenset({0}))
    assert [(one.before, one.gold) for one in steps] == [((), {0}), (("the",), {1})]


def test_lines_of_a_text_file_are_split_at_spaces(tmp_path):
    path = _file(tmp_path, "one two", "three", name="data.txt")
    assert [one.tokens for one in read_inputs(path)] == [("one", "two"), ("three",)]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "a JSON object"),
        ("[1]", "a JSON object"),
        ({"words": ["a"]}, "`tokens` or `text`"),
        ({"tokens": []}, "a text or a list of tokens"),
        ({"tokens": [1]}, "a text or a list of tokens"),
        ({"tokens": ["a"], "gold": [1]}, "positions from 0 to 0"),
        ({"tokens": ["a"], "gold": [True]}, "positions from 0 to 0"),
        ({"source": "a", "target": "b", "links": [[0, 1]]}, "target below 1"),
        ({"source": "a", "target": "b", "links": [0]}, "pairs"),
    ],
)
def test_a_line_that_is_no_input_is_named_with_what_it_should_be(tmp_path, line, said):
    path = _file(tmp_path, {"tokens": ["a"]}, line)
    with pytest.raises(InputError, match="line 2") as caught:
        read_inputs(path)
    assert said in str(caught.value)


def test_a_tab_separates_the_sides_of_a_pair_which_becomes_steps(tmp_path):
    path = _file(tmp_path, "le chat\tthe cat", "", "oui\tyes", name="pairs.TSV")
    found = read_inputs(path)
    assert [(one.tokens, one.before, one.label) for one in found] == [
        (("le", "chat"), (), "the"),
        (("le", "chat"), ("the",), "cat"),
        (("oui",), (), "yes"),
    ]
    letters = read_inputs(path, lambda side, text: list(text))
    assert letters[0].tokens == tuple("le chat")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("only a text", "1 column: only a text"),
        ("le chat\tthe cat\t0-0", "3 columns"),
        ("\tthe cat", "both with text"),
    ],
)
def test_a_line_of_a_table_that_is_no_pair_is_refused(tmp_path, line, said):
    with pytest.raises(InputError, match="line 2: this is no pair") as caught:
        read_inputs(_file(tmp_path, "a\tb", line, name="pairs.tsv"))
    assert said in str(caught.value)


def test_the_end_of_a_name_counts_in_upper_case_too_and_a_byte_order_mark_does_not(tmp_path):
    path = _file(tmp_path, '\ufeff{"text": "a\u2028b"}', '{"tokens": ["c"]}\r', name="D.JSONL")
    assert [one.tokens for one in read_inputs(path)] == [("a", "b"), ("c",)]


def test_texts_are_cut_as_the_model_cuts_them(tmp_path):
    def cut(texts, *, gold):
        marks = gold or [None] * len(texts)
        return [
            Input(("[CLS]", *text), None, frozenset({0}), m and frozenset(1 + i for i in m))
            for text, m in zip(texts, marks, strict=True)
        ]

    path = _file(tmp_path, {"text": "ab", "label": "x"}, {"tokens": ["a", "b"], "gold": [1]})
    first, second = read_inputs(path, cut=cut)
    assert first == Input(("[CLS]", "a", "b"), fixed=frozenset({0}), label="x")
    assert second == Input(("[CLS]", "a", "b"), fixed=frozenset({0}), gold=frozenset({2}))
    assert read_inputs(_file(tmp_path, "ab", name="t.txt"), cut=cut)[0].tokens[0] == "[CLS]"
    with pytest.raises(InputError, match="gold beside `tokens`"):
        read_inputs(_file(tmp_path, {"text": "ab", "gold": [1]}), cut=cut)


def test_a_text_for_a_model_that_writes_is_no_input(tmp_path):
    with pytest.raises(InputError, match="source and target, since the model writes"):
        read_inputs(_file(tmp_path, "abc", name="t.txt"), lambda side, text: list(text))


def test_files_that_cannot_be_used_are_refused(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_inputs(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="no inputs"):
        read_inputs(_file(tmp_path, "", "  "))
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="no text"):
        read_inputs(binary)


def test_the_fingerprint_changes_with_every_part_of_an_input():
    one = Input(("a", "b"), before=(), fixed=frozenset({0}), gold=frozenset({1}), label="x")
    others = [
        Input(("a", "c"), (), frozenset({0}), frozenset({1}), "x"),
        Input(("a", "b"), ("y",), frozenset({0}), frozenset({1}), "x"),
        Input(("a", "b"), (), frozenset(), frozenset({1}), "x"),
        Input(("a", "b"), (), frozenset({0}), None, "x"),
        Input(("a", "b"), (), frozenset({0}), frozenset({1}), "z"),
    ]
    names = {fingerprint([each]) for each in (one, *others)}
    assert len(names) == 6
    assert fingerprint([one]) == fingerprint([Input(**vars(one))])
