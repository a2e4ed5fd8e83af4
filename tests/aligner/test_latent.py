import itertools
import math

import pytest
import torch

from regard.aligner.latent import chain_likelihood, independent_likelihood

EMPTY = 0.3


def drawn(*shape, seed=0):
    return torch.rand(
        *shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)
    )


def distribution(*shape, seed=0):
    weights = drawn(*shape, seed=seed) + 0.05
    return weights / weights.sum(-1, keepdim=True)


def every_way(words, places):
    """All alignments: a source place for each target word, or None."""
    return itertools.product([None, *range(places)], repeat=words)


def chain_of(way, lexicon, first, later):
    """The probability of one alignment and the sentence, written out from the model's text."""
    at, product = None, 1.0
    for word, place in enumerate(way):
        if place is None:
            product *= EMPTY * lexicon[word, -1].item()
            continue
        moved = first[place] if at is None else later[at, place]
        product *= (1 - EMPTY) * moved.item() * lexicon[word, place].item()
        at = place
    return product


def independent_of(way, lexicon, weights):
    product = 1.0
    for word, place in enumerate(way):
        share = EMPTY if place is None else (1 - EMPTY) * weights[word, place].item()
        product *= share * lexicon[word, -1 if place is None else place].item()
    return product


def posteriors_of(probability, words, places):
    found = torch.zeros(words, places + 1, dtype=torch.float64)
    total = 0.0
    for way in every_way(words, places):
        share = probability(way)
        total += share
        for word, place in enumerate(way):
            found[word, places if place is None else place] += share
    return total, found / total


@pytest.mark.parametrize("kind", ["chain", "independent"])
def test_likelihood_and_its_gradient_are_sums_over_every_alignment(kind):
    words, places = 5, 3
    lexicon = drawn(words, places + 1)
    first, later = distribution(places, seed=1), distribution(places, places, seed=2)
    weights = distribution(words, places, seed=3)
    there = torch.ones(1, words, dtype=torch.bool)
    logs = lexicon.log().unsqueeze(0).requires_grad_()
    if kind == "chain":
        found = chain_likelihood(logs, first[None], later[None], there, empty=EMPTY)
        total, expected = posteriors_of(
            lambda way: chain_of(way, lexicon, first, later), words, places
        )
    else:
        found = independent_likelihood(logs, weights[None], there, empty=EMPTY)
        total, expected = posteriors_of(
            lambda way: independent_of(way, lexicon, weights), words, places
        )
    assert found.item() == pytest.approx(math.log(total), rel=1e-12)
    (posteriors,) = torch.autograd.grad(found, logs)
    torch.testing.assert_close(posteriors[0], expected, rtol=1e-10, atol=1e-12)


def test_padding_changes_nothing_and_gets_nothing():
    words, places = 3, 2
    lexicon = drawn(1, words, places + 1).log()
    first, later = distribution(1, places, seed=1), distribution(1, places, places, seed=2)
    there = torch.ones(1, words, dtype=torch.bool)
    alone = chain_likelihood(lexicon, first, later, there, empty=EMPTY)

    padded = torch.full((1, 7, 6), -60.0, dtype=torch.float64)
    padded[:, :words, :places] = lexicon[..., :-1]
    padded[:, :words, -1] = lexicon[..., -1]
    padded.requires_grad_()
    wide_first, wide_later = torch.zeros(1, 5).double(), torch.zeros(1, 5, 5).double()
    wide_first[:, :places], wide_later[:, :places, :places] = first, later
    mask = torch.arange(7)[None] < words
    beside = chain_likelihood(padded, wide_first, wide_later, mask, empty=EMPTY)
    assert beside.item() == pytest.approx(alone.item(), rel=1e-12)
    (posteriors,) = torch.autograd.grad(beside, padded)
    assert not posteriors[:, words:].any()
    assert not posteriors[..., places:-1].any()


def test_a_sentence_of_hundreds_of_unlikely_words_stays_finite():
    words, places = 401, 97
    lexicon = torch.full((1, words, places + 1), -69.0).requires_grad_()
    first, later = (
        torch.full((1, places), 1 / places),
        torch.full((1, places, places), 1 / places),
    )
    there = torch.ones(1, words, dtype=torch.bool)
    found = chain_likelihood(lexicon, first, later, there, empty=EMPTY)
    assert found.item() == pytest.approx(-69.0 * words, rel=1e-4)
    (posteriors,) = torch.autograd.grad(found, lexicon)
    torch.testing.assert_close(posteriors.sum(-1), torch.ones(1, words), rtol=1e-3, atol=0)
