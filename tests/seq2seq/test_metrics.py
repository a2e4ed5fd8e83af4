import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import InputError
from regard.seq2seq.metrics import error_rates, nearest_reference


def _distance(a, b) -> int:
    """Edit distance by its definition, a table of all prefixes."""
    table = [[i + j for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
            )
    return table[-1][-1]


words = st.lists(st.sampled_from(["AA", "B", "CH", "A"]), max_size=7).map(tuple)
references = st.lists(words.filter(len), min_size=1, max_size=4)


@given(words, references)
def test_the_nearest_reference_is_the_one_of_a_slow_table(prediction, known):
    index, edits = nearest_reference(prediction, known)
    distances = [_distance(prediction, reference) for reference in known]
    assert edits == min(distances) == distances[index]
    nearest = [r for r, d in zip(known, distances, strict=True) if d == edits]
    assert len(known[index]) == max(map(len, nearest))


@given(st.lists(st.tuples(words, references), min_size=1, max_size=7))
def test_the_rates_are_sums_over_examples_of_a_slow_table(examples):
    edits = symbols = wrong = 0
    for prediction, known in examples:
        distance, length = min((_distance(prediction, r), -len(r)) for r in known)
        edits, symbols, wrong = edits + distance, symbols - length, wrong + (distance > 0)
    rates = error_rates([p for p, _ in examples], [r for _, r in examples])
    assert rates.symbol_error_rate == pytest.approx(edits / symbols)
    assert rates.exact_match_error == pytest.approx(wrong / len(examples))


def test_of_equally_near_references_the_longest_gives_the_length():
    # "ab" is one edit from both "a" and "abc".
    for known in (["a", "abc"], ["abc", "a"]):
        assert error_rates(["ab"], [known]).symbol_error_rate == pytest.approx(1 / 3)


def test_a_match_of_any_reference_is_no_error():
    rates = error_rates([("K", "AE", "T")], [[("K", "AA", "T"), ("K", "AE", "T")]])
    assert (rates.edits, rates.wrong, rates.token_accuracy) == (0, 0, 1.0)


def test_symbols_are_compared_whole():
    assert error_rates([("AA",)], [[("A", "A")]]).edits == 2


def test_an_empty_prediction_misses_everything():
    rates = error_rates([()], [[("A", "B", "C")]])
    assert (rates.symbol_error_rate, rates.exact_match_error, rates.token_accuracy) == (1, 1, 0)


def test_token_accuracy_counts_positions():
    # A symbol that is left out shifts all after it.
    assert error_rates(["bcde"], [["abcde"]]).token_accuracy == 0
    assert error_rates(["abcdX"], [["abcde"]]).token_accuracy == pytest.approx(4 / 5)


def test_a_far_too_long_prediction_is_worse_than_missing_everything():
    assert error_rates(["x" * 11], [["abc"]]).symbol_error_rate == pytest.approx(11 / 3)


@pytest.mark.parametrize(
    ("predictions", "known"),
    [([], []), (["a"], []), (["a"], [[]]), (["a"], [["a", ""]]), (["a"], [["a"], ["b"]])],
)
def test_what_cannot_be_scored_is_refused(predictions, known):
    with pytest.raises(InputError, match=r"error_rates\(\)"):
        error_rates(predictions, known)
