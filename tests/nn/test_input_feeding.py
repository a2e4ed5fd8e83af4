import numpy as np
import pytest
import torch

from regard.errors import ConventionError, ShapeError
from regard.nn import InputFeedingDecoder

BATCH, T_DEC, T_ENC, D_IN, D_S, D_H = 2, 3, 5, 7, 11, 13


def _case():
    torch.manual_seed(101)
    decoder = InputFeedingDecoder(D_IN, D_S, D_H, score="general").double()
    shapes = (BATCH, T_DEC, D_IN), (BATCH, T_ENC, D_H), (BATCH, D_S)
    return decoder, *(torch.randn(shape, dtype=torch.float64) for shape in shapes)


def test_each_step_reads_its_input_and_the_attentional_state_before():
    decoder, inputs, encoded, start = _case()
    decoded = decoder(inputs, decoder.prepare(encoded), start)
    p = {name: x.detach().numpy() for name, x in decoder.named_parameters()}
    for b in range(BATCH):
        s, fed, H = start[b].numpy(), np.zeros(D_S), encoded[b].numpy()
        for t in range(T_DEC):
            x = np.concatenate([inputs[b, t].numpy(), fed])
            i = p["cell.weight_ih"] @ x + p["cell.bias_ih"]
            h = p["cell.weight_hh"] @ s + p["cell.bias_hh"]
            (i_r, i_z, i_n), (h_r, h_z, h_n) = np.split(i, 3), np.split(h, 3)
            r, z = 1 / (1 + np.exp(-i_r - h_r)), 1 / (1 + np.exp(-i_z - h_z))
            s = (1 - z) * np.tanh(i_n + r * h_n) + z * s
            e = np.exp([s @ p["attention.W"] @ h for h in H])
            a = e / e.sum()
            c = a @ H
            fed = np.tanh(p["W_c"] @ np.concatenate([c, s]))
            for mine, theirs in ((decoded.outputs, fed), (decoded.states, s),
                                 (decoded.contexts, c), (decoded.weights, a)):  # fmt: skip
                np.testing.assert_allclose(
                    mine[b, t].detach().numpy(), theirs, rtol=0, atol=1e-12
                )


def test_what_was_attended_to_changes_the_next_state():
    # Without input feeding, s_2 could not depend on the source.
    decoder, inputs, encoded, start = _case()
    one = decoder(inputs, decoder.prepare(encoded), start).states
    other = decoder(inputs, decoder.prepare(encoded + 1), start).states
    assert torch.equal(one[:, 0], other[:, 0])
    assert not torch.allclose(one[:, 1], other[:, 1])


def test_the_state_carries_the_attentional_state():
    decoder, inputs, encoded, start = _case()
    state = decoder.start(start)
    assert state.carried is None
    output, state, _ = decoder.step(inputs[:, 0], decoder.prepare(encoded), state)
    assert torch.equal(state.carried, output)


def test_the_options_of_its_attention_are_checked():
    with pytest.raises(ShapeError, match=r'score="general" compares the two sizes'):
        InputFeedingDecoder(D_IN, D_S, D_H)
    with pytest.raises(ConventionError, match="there is no normalizer 'argmax'"):
        InputFeedingDecoder(D_IN, D_S, D_H, score="general", normalizer="argmax")
    with pytest.raises(ShapeError, match=r"InputFeedingDecoder\(\): `d_in` is not a size"):
        InputFeedingDecoder(0, D_S, D_H)
