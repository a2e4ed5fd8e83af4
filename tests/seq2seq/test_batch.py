from collections import Counter

import numpy as np
import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.batch import PairBatches, collate, collate_sources
from regard.seq2seq.vocab import BOS, EOS, PAD


def _examples(
    count: int, longest: int = 13, seed: int = 0
) -> list[tuple[list[int], list[int]]]:
    random = np.random.default_rng(seed)
    return [
        ([4 + i] * random.integers(1, longest), [4 + i] * random.integers(1, longest))
        for i in range(count)
    ]


def test_a_batch_is_padded_and_its_inputs_are_one_step_behind_its_targets():
    batch = collate([([5, 6], [7]), ([8], [9, 10])])
    assert batch.source.tolist() == [[5, 6], [8, PAD]]
    assert batch.source_lengths is not None
    assert batch.source_lengths.tolist() == [2, 1]
    assert batch.inputs.tolist() == [[BOS, 7, PAD], [BOS, 9, 10]]
    assert batch.targets.tolist() == [[7, EOS, PAD], [9, 10, EOS]]


def test_lengths_are_left_out_where_all_sources_have_one():
    assert collate([([5, 6], [7]), ([8, 9], [9, 10])]).source_lengths is None
    source, lengths = collate_sources([[5, 6], [7]])
    assert source.tolist() == [[5, 6], [7, PAD]]
    assert lengths is not None
    assert lengths.tolist() == [2, 1]


def _epoch(batches: PairBatches, first: int = 0, epoch: int = 0) -> list:
    return [batches.at(first + i) for i in range(batches.epoch_length(epoch))]


def test_an_epoch_shows_every_pair_once():
    examples = _examples(211)
    seen = Counter()
    for batch in _epoch(PairBatches(examples, batch_tokens=101, seed=3)):
        # The symbols of a pair are its number, so what is seen can be counted.
        seen.update((row[0].item() - 4) for row in batch.source)
        for row, source in zip(batch.targets, batch.source, strict=True):
            number = source[0].item() - 4
            wanted = [*examples[number][1], EOS]
            assert row.tolist() == wanted + [PAD] * (len(row) - len(wanted))
            assert source.tolist()[: len(examples[number][0])] == examples[number][0]
    assert seen == Counter(range(211))


def test_batches_keep_to_their_bound_and_mostly_fill_it():
    batches = _epoch(PairBatches(_examples(2003), batch_tokens=307))
    sizes = [batch.source.numel() + batch.inputs.numel() for batch in batches]
    assert max(sizes) <= 307
    assert np.median(sizes) > 0.8 * 307


def test_most_batches_hold_sources_of_one_length():
    batches = _epoch(PairBatches(_examples(2003), batch_tokens=307))
    assert np.mean([batch.source_lengths is None for batch in batches]) > 0.8


def test_rare_lengths_share_batches():
    # Ten pairs of each of fifty lengths: none of the lengths fills a batch.
    examples = [([5] * length, [6] * length) for length in range(1, 51) for _ in range(10)]
    tokens = sum(len(source) + len(target) + 1 for source, target in examples)
    batches = _epoch(PairBatches(examples, batch_tokens=2003))
    assert len(batches) < 1.2 * tokens / 2003


def test_a_pair_longer_than_the_bound_is_a_batch_of_its_own():
    batches = PairBatches([([5] * 23, [6] * 29), ([7], [8])], batch_tokens=11)
    shapes = {tuple(batch.source.shape) for batch in _epoch(batches)}
    assert shapes == {(1, 23), (1, 1)}


def _same(one, other) -> bool:
    return all(
        torch.equal(a, b)
        for a, b in (
            (one.source, other.source),
            (one.inputs, other.inputs),
            (one.targets, other.targets),
        )
    )


def test_any_step_can_be_asked_for_first():
    examples = _examples(211)
    in_order = PairBatches(examples, batch_tokens=101, seed=3)
    steps = 3 * in_order.epoch_length() + 2
    wanted = [in_order.at(step) for step in range(steps)]
    for step in (steps - 1, 0, steps // 2):
        fresh = PairBatches(examples, batch_tokens=101, seed=3)
        assert _same(fresh.at(step), wanted[step])


def test_epochs_and_seeds_differ():
    batches = PairBatches(_examples(211), batch_tokens=101, seed=3)
    length = batches.epoch_length(0)
    first, second = _epoch(batches), _epoch(batches, first=length, epoch=1)
    assert not all(_same(a, b) for a, b in zip(first, second, strict=False))
    other = PairBatches(_examples(211), batch_tokens=101, seed=4)
    assert not all(_same(a, b) for a, b in zip(first, _epoch(other), strict=False))


@pytest.mark.parametrize("examples", [[], [([5], [])], [([], [5])]])
def test_examples_with_an_empty_side_are_refused(examples):
    with pytest.raises(InputError, match="`examples`"):
        PairBatches(examples, batch_tokens=101)


def test_a_batch_size_below_one_is_refused():
    with pytest.raises(InputError, match="`batch_tokens`"):
        PairBatches(_examples(3), batch_tokens=0)
