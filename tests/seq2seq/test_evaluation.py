import pytest

from regard.errors import InputError
from regard.seq2seq.answers import Answer, Prediction
from regard.seq2seq.evaluation import Evaluation, evaluate
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.search import Hypothesis


def _prediction(source, *targets, log_prob=-1.0, finished=True):
    return Prediction(
        source,
        tuple(source),
        (),
        tuple(
            Answer(t, tuple(t), Hypothesis((), (log_prob,), finished, None, log_prob))
            for t in targets
        ),
    )


def _evaluation(*rows, **known):
    predictions, references = zip(*rows, strict=True)
    return Evaluation(
        predictions,
        references,
        tuple(tuple(tuple(text) for text in texts) for texts in references),
        **known,
    )


FOUND = _evaluation(
    (_prediction("a", "xyz", "x", "xy"), ("xy", "yy")),  # 1 edit, right as third
    (_prediction("abc", "xy", "yy", "zz"), ("xy",)),  # right
    (_prediction("abcde", "pqrs", "wxyz", log_prob=-2.0), ("wxy",)),  # 4 edits, then 1
    (_prediction("abcdefghijkl", "abcd", "abcd", finished=False), ("efgh",)),  # 4 edits
)


def test_rates_are_those_of_the_first_answers_and_the_nearest_references():
    rates = FOUND.rates
    assert (rates.edits, rates.symbols, rates.wrong, rates.examples) == (9, 11, 3, 4)
    assert FOUND.unfinished == 1


def test_the_oracle_takes_the_best_of_the_first_answers():
    edits = [(rates.edits, rates.wrong) for rates in FOUND.oracle()]
    assert edits == [(1 + 0 + 4 + 4, 3), (1 + 0 + 1 + 4, 3), (0 + 0 + 1 + 4, 2)]


def test_rows_by_length_hold_every_source_once():
    rows = FOUND.by_length()  # lengths 1, 3, 5 and 12 make rows of two
    assert [(row.shortest, row.longest, row.rates.examples) for row in rows] == [
        (1, 2, 1),
        (3, 4, 1),
        (5, 6, 1),
        (11, 12, 1),
    ]
    assert [row.rates.edits for row in rows] == [1, 0, 4, 4]


@pytest.mark.parametrize(
    ("lengths", "width"), [((3, 12), 1), ((1, 11), 2), ((1, 51), 10), ((7, 230), 50)]
)
def test_rows_have_round_widths(lengths, width):
    found = _evaluation(*((_prediction("s" * n, "x"), ("x",)) for n in lengths))
    assert {row.longest - row.shortest + 1 for row in found.by_length()} == {width}
    for row, length in zip(found.by_length(), lengths, strict=True):
        assert row.shortest <= length <= row.longest


def test_the_worst_have_the_most_edits_and_of_those_the_surest_come_first():
    assert [m.prediction.source[-1] for m in FOUND.worst(7)] == ["l", "e", "a"]
    assert [m.counts.edits for m in FOUND.worst(2)] == [4, 4]


def test_an_interval_surrounds_the_rate():
    interval = FOUND.interval("exact_match_error", samples=199)
    assert interval.rate == FOUND.rates.exact_match_error
    assert interval.low <= interval.rate <= interval.high


def test_no_pairs_are_refused():
    with pytest.raises(InputError, match="`pairs` is empty"):
        evaluate(None, Pairs(()))
