"""What NumPy finds, against loops over lists of texts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.seq2seq.inspection import compare
from regard.seq2seq.inspection.survey import Layout, Side, Survey

PAIRS = st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("ABC")), max_size=23)
LIMIT = 100


def _survey(pairs, *, first_line: int = 1) -> Survey:
    layout = Layout()
    sides = (Side(layout.vocab(side), 3) for side in ("source", "target"))
    data = Survey("train", Path("data.tsv"), *sides)
    for line, (source, target) in enumerate(pairs, first_line):
        data.add(line, source, (target,))
    return data


@given(PAIRS)
def test_a_repeat_names_the_first_line_of_its_pair(pairs):
    expected, seen = [], {}
    for line, pair in enumerate(pairs, 1):
        if pair in seen:
            expected.append((line, seen[pair]))
        seen.setdefault(pair, line)
    found = compare.repeated(_survey(pairs), LIMIT)
    assert list(found) == expected
    assert found.count == len(expected)


@given(PAIRS)
def test_a_source_with_several_targets_is_named_once_with_two_lines(pairs):
    expected, first, told = [], {}, set()
    for line, (source, target) in enumerate(pairs, 1):
        before = first.setdefault(source, (line, target))
        if before[1] != target and source not in told:
            told.add(source)
            expected.append((line, before[0]))
    assert list(compare.with_several_targets(_survey(pairs), LIMIT)) == expected


@given(PAIRS, PAIRS, st.booleans())
def test_a_leak_is_named_once_with_its_first_line_on_both_sides(train, held_out, whole):
    def key(pair):
        return pair if whole else pair[0]

    known = {}
    for line, pair in enumerate(train, 1):
        known.setdefault(key(pair), line)
    expected = {}
    for line, pair in enumerate(held_out, 7):
        if key(pair) in known:
            expected.setdefault(key(pair), (line, known[key(pair)]))
    found = compare.leaked(_survey(held_out, first_line=7), _survey(train), LIMIT, pairs=whole)
    assert list(found) == sorted(expected.values())


@given(PAIRS)
def test_sources_are_counted_once(pairs):
    assert compare.source_count(_survey(pairs)) == len({source for source, _ in pairs})


def test_only_the_first_lines_are_named_and_all_are_counted():
    found = compare.repeated(_survey([("a", "A")] * 13), 3)
    assert (found.count, found.lines, found.others) == (12, [2, 3, 4], [1, 1, 1])


@pytest.mark.parametrize(
    ("t_enc", "t_dec", "odd"),
    [
        (9, 29, False),  # 30 / 10 is three times
        (9, 30, True),
        (29, 9, False),
        (30, 9, True),
        (2, 9, False),  # far more than three times, and seven too many
        (2, 10, True),
    ],
)
def test_a_length_is_odd_when_it_is_three_times_off_and_by_eight_symbols(t_enc, t_dec, odd):
    pairs = [("s" * 7, "t" * 7)] * 23 + [("s" * t_enc, "t" * t_dec)]
    assert compare.odd_ratios(_survey(pairs), LIMIT).lines == ([24] if odd else [])


def test_where_lengths_vary_a_length_has_to_be_further_off():
    spread = [("s" * 7, "t" * n) for n in (1, 2, 3, 5, 7, 11, 17, 23, 31)] * 3
    assert compare.odd_ratios(_survey([*spread, ("s" * 7, "t" * 41)]), LIMIT).count == 0


def test_few_pairs_have_no_usual_length():
    pairs = [("s", "t")] * 18 + [("s", "t" * 997)]
    data = _survey(pairs)
    assert compare.odd_ratios(data, LIMIT).count == 0
    assert compare.overlong(data, "target", LIMIT).count == 0


@pytest.mark.parametrize(
    ("usual", "longest", "found"), [(3, 50, 0), (3, 51, 1), (7, 70, 0), (7, 71, 1)]
)
def test_overlong_is_more_than_fifty_symbols_and_ten_times_the_median(usual, longest, found):
    pairs = [("s" * usual, "t")] * 23 + [("s" * longest, "t")]
    assert compare.overlong(_survey(pairs), "source", LIMIT).count == found
