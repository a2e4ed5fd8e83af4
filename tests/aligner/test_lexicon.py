import math

import pytest
import torch

from regard.aligner.lexicon import Lexicon, Prior

# Three words are given, two are made; the first pair is padding.
GIVEN, MADE = torch.tensor([0, 0, 0, 1, 2]), torch.tensor([0, 0, 1, 1, 0])


def lexicon(words=2, **prior):
    alike = torch.tensor([0.0, 0.0, 1.0, 0.0, 0.5], dtype=torch.float64)
    frequency = torch.tensor([3.0, *[1.0] * (words - 1)], dtype=torch.float64)
    return Lexicon(Prior(**prior), GIVEN, MADE, alike, frequency, 3)


def psi(x):
    return (math.lgamma(x + 1e-5) - math.lgamma(x - 1e-5)) / 2e-5


def test_probabilities_are_the_mean_field_update_of_the_counts():
    found = lexicon(sparsity=0.5, spelling=2.0)
    counts = torch.tensor([0.0, 3.0, 1.0, 2.0, 5.0], dtype=torch.float64)
    found.learn(counts, torch.zeros(2).double())
    # Of word 0: 0.5 a word made, of which there are two, and 2 for the one of its spelling.
    total = 3.0 + 1.0 + 2 * 0.5 + 2.0
    assert found.table[1].item() == pytest.approx(math.exp(psi(3.5) - psi(total)), rel=1e-4)
    assert found.table[2].item() == pytest.approx(math.exp(psi(3.5) - psi(total)), rel=1e-4)
    half = math.exp(psi(5 + 0.5 + 1.0) - psi(5 + 1.0 + 1.0))
    assert found.table[4].item() == pytest.approx(half, rel=1e-4)


def test_a_sparse_prior_leaves_little_to_a_rare_pair():
    for sparsity, least, most in ((1e-4, 0.0, 1e-3), (1.0, 0.05, 1.0)):
        found = lexicon(sparsity=sparsity, spelling=0.0)
        found.learn(torch.tensor([0.0, 5.0, 0.1, 0.0, 0.0]).double(), torch.zeros(2).double())
        assert least <= found.table[2].item() <= most


def test_before_any_text_words_of_one_spelling_are_likelier():
    table = lexicon(words=43).table
    assert table[2] > table[4] > table[1] == table[3]


def test_the_empty_word_makes_what_it_made_and_else_what_is_frequent():
    found = lexicon()
    found.learn(torch.zeros(5).double(), torch.tensor([0.0, 0.0]).double())
    torch.testing.assert_close(found.empty_table, torch.tensor([0.75, 0.25]))
    found.learn(torch.zeros(5).double(), torch.tensor([0.0, 5.0]).double())
    torch.testing.assert_close(found.empty_table, torch.tensor([0.375, 0.625]))


def test_of_a_pair_that_was_not_in_the_text_a_word_is_as_likely_as_such():
    found = lexicon(spelling=0.0)
    unknown = torch.tensor([False, False, False, False, True])
    totals = torch.tensor([2.0, 0.0, 0.0]).double()
    found.restore(torch.zeros(5).double(), totals, torch.zeros(2).double(), unknown)
    assert found.table[4].item() == pytest.approx(0.75)
    assert found.table[1].item() < 1e-20
