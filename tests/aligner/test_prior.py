import torch

from regard.aligner.prior import AttentionPrior


def lengths(*counts, width):
    return torch.arange(width)[None] < torch.tensor(counts)[:, None]


def test_rows_sum_to_one_over_words_and_are_zero_on_padding():
    prior = AttentionPrior()
    source, target = lengths(5, 3, width=5), lengths(2, 7, width=7)
    first, later = prior.chain(source)
    for weights in (prior.diagonal(source, target), first, later):
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert not weights[1, ..., 3:].any()


def test_the_diagonal_is_where_a_word_looks_most():
    source, target = lengths(5, width=5), lengths(5, width=5)
    assert AttentionPrior().diagonal(source, target)[0].argmax(-1).tolist() == [0, 1, 2, 3, 4]


def test_the_next_word_is_where_a_chain_goes_at_first():
    first, later = AttentionPrior().chain(lengths(7, width=7))
    assert first[0].argmax() == 0
    assert later[0].argmax(-1).tolist() == [1, 2, 3, 4, 5, 6, 6]


def test_padding_does_not_move_a_sentence():
    prior = AttentionPrior()
    alone, among = prior.chain(lengths(3, width=3)), prior.chain(lengths(11, 3, width=11))
    torch.testing.assert_close(among[0][1, :3], alone[0][0])
    torch.testing.assert_close(among[1][1, :3, :3], alone[1][0])


def test_places_hundreds_of_words_apart_can_still_be_reached():
    _, later = AttentionPrior().chain(lengths(211, width=211))
    assert later[0, 0, 210] > 0
