import itertools

import pytest

from regard.errors import InputError
from regard.seq2seq.bootstrap import MEASURES, bootstrap
from regard.seq2seq.metrics import counts, error_rates

PREDICTIONS = ["ab", "b", "cad", "abc", "bb"]
REFERENCES = [["ab"], ["ab", "a"], ["cad"], ["bbb"], ["bb", "b"]]


@pytest.mark.parametrize("measure", MEASURES)
def test_the_rate_in_the_middle_is_the_plain_one(measure):
    found = bootstrap(PREDICTIONS, REFERENCES, measure=measure, samples=13)
    assert found.rate == pytest.approx(getattr(error_rates(PREDICTIONS, REFERENCES), measure))
    assert found.low <= found.rate <= found.high


def test_the_ends_are_quantiles_of_all_ways_to_draw():
    # Three examples can be drawn with replacement in 27 ways; a long run comes close to them.
    predictions, references = ["a", "b", "c"], [["a"], ["bb"], ["dd"]]
    wrong = [one.edits > 0 for one in counts(predictions, references)]
    ways = sorted(sum(way) / 3 for way in itertools.product(wrong, repeat=3))
    found = bootstrap(predictions, references, level=0.8, samples=20_000)
    assert found.low == pytest.approx(ways[int(0.1 * 27)])
    assert found.high == pytest.approx(ways[int(0.9 * 27)])


def test_where_nothing_varies_the_interval_is_a_point():
    found = bootstrap(["a"] * 7, [["b"]] * 7, samples=11)
    assert (found.low, found.rate, found.high) == (1.0, 1.0, 1.0)


def test_more_examples_make_a_narrower_interval():
    def width(times: int) -> float:
        found = bootstrap(PREDICTIONS * times, REFERENCES * times, samples=300)
        return found.high - found.low

    assert width(53) < width(5) < width(1)


def test_a_seed_gives_one_interval_and_another_seed_another():
    many = (PREDICTIONS * 31, REFERENCES * 31)
    found = [
        bootstrap(*many, measure="symbol_error_rate", samples=17, seed=s) for s in (3, 3, 5)
    ]
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    "wrong", [{"measure": "wer"}, {"level": 1.0}, {"level": 0.0}, {"samples": 0}, {"seed": -1}]
)
def test_a_refused_argument_is_named(wrong):
    (name,) = wrong
    with pytest.raises(InputError, match=f"`{name}` is refused"):
        bootstrap(["a"], [["a"]], **wrong)
