"""Tau-b, its p, Spearman: against SciPy where it is installed, and by hand."""

import numpy as np
import pytest

from regard.audit.kendall import spearman, tau_b, top_overlap


def test_agreement_and_disagreement_are_one_and_minus_one():
    assert tau_b([1, 2, 3, 5], [2, 4, 7, 9])[0] == 1.0
    assert tau_b([1, 2, 3, 5], [9, 7, 4, 2])[0] == -1.0


def test_three_numbers_in_order_are_no_evidence():
    # Of the six orders of three, two are as extreme: p = 1/3.
    assert tau_b([1, 2, 3], [1, 2, 3])[1] == pytest.approx(1 / 3)


def test_a_constant_has_no_tau():
    assert np.isnan(tau_b([1, 1, 1], [1, 2, 3])[0])
    assert np.isnan(spearman([1, 1, 1], [1, 2, 3]))


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n", [2, 7, 19, 33, 34, 61])
def test_tau_p_and_spearman_are_scipys(n, ties):
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(n + 100 * ties)
    one = random.integers(0, 5, n) if ties else random.normal(size=n)
    other = one + random.normal(size=n)
    if ties:
        other = np.round(other)
    expected = stats.kendalltau(one, other)
    tau, p = tau_b(one, other)
    assert tau == pytest.approx(expected.statistic, abs=1e-12)
    assert p == pytest.approx(expected.pvalue, rel=1e-9)
    assert spearman(one, other) == pytest.approx(stats.spearmanr(one, other).statistic)


def test_the_overlap_counts_shared_places_of_the_top():
    assert top_overlap([9, 8, 7, 1, 0], [9, 0, 7, 8, 1], 3) == pytest.approx(2 / 3)
    assert top_overlap([2, 1], [1, 2], 3) == 1.0
