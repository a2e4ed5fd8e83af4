"""The oracle agrees with plain loops, and knows what a contract asks for."""

import math

import numpy as np
import pytest

from regard.check.contract import Contract
from regard.check.oracle import alibi_slopes, declared_scale, expected, softmax
from regard.check.relations.base import Bench, Case
from regard.check.relations.reading import merged, readings
from regard.check.subject import Loaded, load
from relation_subjects import SUBJECTS


def bench_of(name: str, **statements: object) -> Bench:
    subject = SUBJECTS[name]
    loaded = load(subject.source, f"/subjects/{name}.py", subject.entry)
    assert isinstance(loaded, Loaded)
    return Case(loaded, Contract.from_mapping({**subject.contract, **statements})).bench(0)


def test_a_row_without_keys_is_zero_and_large_scores_stay_finite() -> None:
    scores = np.array([[1.0, 2.0, 3.0], [700.0, -700.0, 1e5]])
    allowed = np.array([[False, False, False], [True, True, True]])
    found = softmax(scores, allowed)
    assert found.tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]


def test_softmax_shares_one_among_the_allowed_keys() -> None:
    found = softmax(np.array([0.0, math.log(3.0), 5.0]), np.array([True, True, False]))
    np.testing.assert_allclose(found, [0.25, 0.75, 0.0], rtol=1e-12)


@pytest.mark.parametrize(
    ("score", "scale", "wanted"),
    [
        ("scaled_dot", None, 0.25),
        ("dot", None, 1.0),
        ("general", None, 1.0),
        ("dot", "learned", None),
        ("additive", None, None),
        ("scaled_dot", "1/sqrt(d_head)", 10**-0.5),
        ("scaled_dot", "0.125", 0.125),
    ],
)
def test_the_scale_is_the_scores_own_unless_declared(
    score: str, scale: str | None, wanted: float | None
) -> None:
    found = declared_scale(bench_of("cross", score=score, scale=scale), 16)
    assert found == (None if wanted is None else pytest.approx(wanted))


def test_slopes_are_the_powers_of_the_paper_and_of_its_code_between_powers_of_two() -> None:
    assert alibi_slopes(8)[0].tolist() == [2.0**-i for i in range(1, 9)]
    assert len(alibi_slopes(8)) == 1
    plain, code = alibi_slopes(6)
    assert plain[-1] == 2.0**-8
    # The released code takes four heads' slopes, then every other one of eight heads'.
    np.testing.assert_allclose(code, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3])


@pytest.mark.parametrize("name", ["heads", "cross", "rotary", "alibi"])
def test_recomputed_weights_and_contexts_are_those_of_right_code(name: str) -> None:
    bench = bench_of(name)
    (reading,) = readings(bench)
    answer = expected(bench, reading)
    assert answer is not None
    assert answer.context is not None
    np.testing.assert_allclose(answer.weights, reading.weights, atol=2e-6)
    np.testing.assert_allclose(answer.context, reading.context, atol=2e-5)


def test_recomputed_weights_are_those_of_plain_loops() -> None:
    bench = bench_of("cross")
    args = bench.probe.args
    (reading,) = readings(bench)
    answer = expected(bench, reading)
    assert answer is not None
    b, t = 1, 2
    scores = [
        sum(float(q * k) for q, k in zip(args["queries"][b, t], key, strict=True))
        / math.sqrt(len(key))
        for key in args["keys"][b][: args["lengths"][b]]
    ]
    e = [math.exp(s) for s in scores]
    wanted = [x / sum(e) for x in e] + [0.0] * (args["keys"].shape[1] - len(e))
    np.testing.assert_allclose(answer.weights[b, 0, t], wanted, atol=1e-6)


def test_heads_are_merged_by_blocks_or_by_neighbours() -> None:
    heads = np.arange(12.0).reshape(1, 2, 3, 2)  # (batch, heads, position, features)
    assert merged(heads)[0, 0].tolist() == [0.0, 1.0, 6.0, 7.0]
    assert merged(heads, interleaved=True)[0, 0].tolist() == [0.0, 6.0, 1.0, 7.0]


def test_one_reading_a_decoder_step() -> None:
    bench = bench_of("decoder")
    found = readings(bench)
    assert len(found) == bench.sizes["T_dec"]
    assert {r.weights.shape for r in found} == {(3, 1, 1, bench.sizes["T_enc"])}
