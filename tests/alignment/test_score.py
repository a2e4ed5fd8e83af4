import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.alignment.link_files import read_links
from regard.alignment.links import Gold
from regard.alignment.score import difference, score_alignments
from regard.errors import InputError

DATA = Path(os.environ.get("REGARD_DATA", "/nowhere")) / "align"
LINKS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 6)), max_size=12)
PAIRS = st.lists(st.tuples(LINKS, LINKS, LINKS), min_size=1, max_size=5)


@given(PAIRS)
def test_the_measures_are_those_of_the_formulas(pairs) -> None:
    gold = [Gold.of(sure, possible) for sure, possible, _ in pairs]
    score = score_alignments(gold, [system for *_, system in pairs])
    a = sum(len(system) for *_, system in pairs)
    s = sum(len(sure) for sure, *_ in pairs)
    hit = sum(len(system & sure) for sure, _, system in pairs)
    allowed = sum(len(system & (sure | possible)) for sure, possible, system in pairs)
    if a:
        assert score.precision == pytest.approx(allowed / a)
    if s:
        assert score.recall == pytest.approx(hit / s)
    if a + s:
        assert score.aer == pytest.approx(1 - (hit + allowed) / (a + s))


def test_the_sure_links_themselves_have_no_error() -> None:
    gold = [Gold.of({(0, 0), (1, 2)}, {(3, 3)}), Gold.of({(4, 1)})]
    score = score_alignments(gold, [pair.sure for pair in gold])
    assert (score.precision, score.recall, score.f1, score.aer) == (1, 1, 1, 0)


def test_no_links_at_all_miss_everything_and_get_nothing_wrong() -> None:
    score = score_alignments([Gold.of({(0, 0)})], [frozenset()])
    assert (score.precision, score.recall, score.f1, score.aer) == (1, 0, 0, 1)


def test_sentences_are_scored_one_by_one_too() -> None:
    gold = [Gold.of({(0, 0)}), Gold.of({(1, 1), (2, 2)})]
    rows = score_alignments(gold, [frozenset({(0, 0)}), frozenset({(1, 1)})]).sentences()
    assert rows[:, 3].tolist() == [0, pytest.approx(1 / 3)]


def test_the_interval_covers_the_true_rate_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(3)
    inside = 0
    for trial in range(97):
        right = random.random((53, 11)) < 0.7  # so AER is 0.3: one link a word, right or not
        gold = [Gold.of({(i, 0) for i in range(11)}) for _ in right]
        links = [frozenset((i, int(not ok)) for i, ok in enumerate(row)) for row in right]
        interval = score_alignments(gold, links).interval(resamples=400, seed=trial)
        inside += interval.low <= 0.3 <= interval.high
    assert 83 <= inside <= 97  # of 97; 95 % would be 92, and 83 has a chance below 1 in 10,000


def test_a_paired_difference_sees_what_two_intervals_do_not() -> None:
    random = np.random.default_rng(5)
    hard = random.random(211) < 0.5  # half the sentences are hopeless for both
    gold = [Gold.of({(i, i) for i in range(7)}) for _ in hard]
    wrong = frozenset((i, i + 9) for i in range(7))
    good = [wrong if h else frozenset((i, i) for i in range(7)) for h in hard]
    worse = [wrong if h else links - {(0, 0)} for h, links in zip(hard, good, strict=True)]
    one, other = score_alignments(gold, worse), score_alignments(gold, good)
    assert one.interval().low < other.interval().high
    assert difference(one, other).low > 0


@pytest.mark.parametrize(("gold", "system"), [([], []), ([Gold.of([])], [])])
def test_unequal_or_no_sentences_are_refused(gold, system) -> None:
    with pytest.raises(InputError, match="do not match"):
        score_alignments(gold, system)


@pytest.mark.parametrize(
    "wrong", [{"level": 1.0}, {"level": 0.0}, {"resamples": 99}, {"measure": "wer"}]
)
def test_an_argument_outside_its_range_is_refused(wrong) -> None:
    score = score_alignments([Gold.of({(0, 0)})], [frozenset()])
    with pytest.raises(InputError, match=f"`{next(iter(wrong))}`"):
        score.interval(**wrong)


def test_scores_of_different_sentences_are_not_compared() -> None:
    one = score_alignments([Gold.of({(0, 0)})], [frozenset()])
    other = score_alignments([Gold.of({(0, 0), (1, 1)})], [frozenset()])
    with pytest.raises(InputError, match="different sentences"):
        difference(one, other)


@pytest.mark.skipif(not DATA.is_dir(), reason="REGARD_DATA names no directory with `align`")
@pytest.mark.parametrize(
    ("system", "published"),
    [
        ("enfr.fastalign.grow-diagonal", 10.5),
        ("roen.fastalign.grow-diagonal", 32.1),
        ("enfr.giza.grow-diagonal", 5.9),
        ("roen.giza.grow-diagonal-final", 26.4),
        ("enfr.awesome-align", 4.1),
        ("roen.awesome-align", 20.7),
        ("jaen.awesome-align", 37.4),
    ],
)
def test_published_outputs_have_the_published_error_rate(system, published) -> None:
    gold = read_links(DATA / f"{system.split('.')[0]}.gold")
    found = read_links(DATA / f"{system}.out")
    assert round(100 * score_alignments(gold.sentences, found.links()).aer, 1) == published
