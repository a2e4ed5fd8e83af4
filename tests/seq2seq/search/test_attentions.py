"""Searches carry each decoder's state along, whatever is in it."""

import numpy as np
import pytest
import torch

from regard.seq2seq.model import ModelConfig
from regard.seq2seq.search import beam_search, greedy
from regard.seq2seq.train import new_model
from regard.seq2seq.vocab import BOS, EOS

SIZES = {"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13, "dropout": 0.0}
KINDS = [
    {"attention": "general", "input_feeding": True},
    {"attention": "concat", "cell": "lstm", "decoder_layers": 2},
    {"attention": "bahdanau", "cell": "lstm", "decoder_layers": 2},
    {"attention": "local-m"},
    {"attention": "local-p", "reach": 2.0},
    {"attention": "coverage"},
    {"attention": "location", "filters": 3, "filter_width": 3},
    {"attention": "monotonic"},
    {"attention": "bahdanau-paper"},
]


@pytest.fixture(params=KINDS, ids=lambda kind: "-".join(map(str, kind.values())))
def carrying(request):
    model = new_model(ModelConfig(17, 19, **SIZES, **request.param), seed=3).eval()
    with torch.no_grad():  # far from uniform
        for parameter in model.parameters():
            parameter.mul_(2.0)
    return model


def test_answers_have_the_probabilities_of_teacher_forcing(carrying, batch):
    found = beam_search(
        carrying, batch.source, batch.source_lengths, max_length=[7, 3, 5], beam=4, nbest=3
    )
    for row, (answers, t_enc) in enumerate(zip(found, (5, 2, 1), strict=True)):
        assert len(answers) == 3
        source = batch.source[row : row + 1, :t_enc]
        for answer in answers:
            with torch.no_grad():
                scored = carrying(source, torch.tensor([[BOS, *answer.ids]]))
            scores = scored.symbol_scores[0].clone()
            scores[:, [0, 1, 3]] = -torch.inf
            ends = [*answer.ids, EOS][: len(answer.log_probs)]
            each = scores.log_softmax(-1)[torch.arange(len(ends)), torch.tensor(ends)]
            np.testing.assert_allclose(answer.log_probs, each.numpy(), atol=1e-4)
            looked = scored.weights[0, : len(answer.ids)].numpy()
            np.testing.assert_allclose(answer.weights, looked, atol=1e-4)


def test_a_beam_of_one_is_the_greedy_search_and_rows_that_ended_leave(carrying, batch):
    given = {"max_length": [11, 0, 3]}  # rows end at different times
    one = greedy(carrying, batch.source, batch.source_lengths, **given)
    found = beam_search(carrying, batch.source, batch.source_lengths, beam=1, **given)
    assert [h.ids for h in one] == [answers[0].ids for answers in found]
    alone = greedy(carrying, batch.source[:1], max_length=11)[0]
    assert one[0].ids == alone.ids
    np.testing.assert_allclose(one[0].log_probs, alone.log_probs, atol=1e-4)
