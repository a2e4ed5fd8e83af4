import numpy as np
import pytest
import torch

from regard.errors import ConventionError, ShapeError
from regard.nn import PaperBahdanauDecoder

BATCH, T_DEC, T_ENC, D_IN, D_S, D_H, D_ATTN, D_MAXOUT, D_VOCAB = 3, 5, 7, 2, 11, 26, 17, 19, 23
LENGTHS = torch.tensor([7, 3, 0])


def _case(**options):
    torch.manual_seed(107)
    decoder = PaperBahdanauDecoder(D_IN, D_S, D_H, D_ATTN, **options).double()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter)  # biases too, which start at zero
    inputs = torch.randn(BATCH, T_DEC, D_IN, dtype=torch.float64)
    encoded = torch.randn(BATCH, T_ENC, D_H, dtype=torch.float64)
    return decoder, inputs, encoded


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _by_hand(p, x_of, H, length, readout):
    """Appendix A.1.2 and A.2.2, one example, one equation a line."""
    zero = np.zeros(1)
    b = {name: p.get(name, zero) for name in ("b", "b_z", "b_r", "b_s", "b_o")}
    backward = H[0, D_H // 2 :] if length else np.zeros(D_H // 2)
    s, rows = np.tanh(p["W_s"] @ backward + b["b_s"]), []
    for x in x_of:
        e = [
            p["attention.v_a"] @ np.tanh(p["attention.W_a"] @ s + p["attention.U_a"] @ h)
            for h in H[:length]
        ]
        a = np.zeros(T_ENC)
        a[:length] = np.exp(e) / np.exp(e).sum() if length else 0
        c = a @ H
        z = _sigmoid(p["W_z"] @ x + p["U_z"] @ s + p["C_z"] @ c + b["b_z"])
        r = _sigmoid(p["W_r"] @ x + p["U_r"] @ s + p["C_r"] @ c + b["b_r"])
        candidate = np.tanh(p["W"] @ x + p["U"] @ (r * s) + p["C"] @ c + b["b"])
        after = (1 - z) * s + z * candidate
        output = np.concatenate([after, c])
        if readout:
            t = p["U_o"] @ s + p["V_o"] @ x + p["C_o"] @ c + b["b_o"]
            output = np.array([max(t[2 * j], t[2 * j + 1]) for j in range(D_MAXOUT)])
            output = p["W_o"] @ output if "W_o" in p else output
        s = after
        rows.append((output, s, c, a))
    return [np.array(each) for each in zip(*rows, strict=True)]


@pytest.mark.parametrize("bias", [False, True], ids=["no bias", "bias"])
@pytest.mark.parametrize("readout", [(), ("d_maxout",), ("d_maxout", "d_vocab")])
def test_it_computes_the_appendix(readout, bias):
    sizes = {name: {"d_maxout": D_MAXOUT, "d_vocab": D_VOCAB}[name] for name in readout}
    decoder, inputs, encoded = _case(bias=bias, **sizes)
    memory = decoder.prepare(encoded, LENGTHS)
    decoded = decoder(inputs, memory, decoder.first_state(memory))
    p = {name: x.detach().numpy() for name, x in decoder.named_parameters()}
    assert ("b_z" in p) is bias
    for n, length in enumerate(LENGTHS.tolist()):
        expected = _by_hand(p, inputs[n].numpy(), encoded[n].numpy(), length, readout)
        for mine, theirs in zip(decoded, expected, strict=True):
            np.testing.assert_allclose(mine[n].detach().numpy(), theirs, rtol=0, atol=1e-11)
    assert decoded.outputs.shape[-1] == decoder.d_out
    assert decoder.d_out == ([D_S + D_H, D_MAXOUT, D_VOCAB][len(readout)])


def test_the_first_state_reads_the_backward_half_of_the_first_encoder_state_alone():
    decoder, _, encoded = _case()
    expected = decoder.first_state(decoder.prepare(encoded))
    changed = encoded.clone()
    changed[:, 1:], changed[:, 0, : D_H // 2] = 0, 0
    assert torch.equal(decoder.first_state(decoder.prepare(changed)), expected)
    changed[:, 0, -1] += 1
    assert not torch.equal(decoder.first_state(decoder.prepare(changed)), expected)
    with pytest.raises(ConventionError, match=r"first_state\(\): `memory` was prepared by"):
        decoder.first_state(_case()[0].prepare(encoded))


def test_the_weights_of_a_step_ask_with_the_state_before_it():
    decoder, inputs, encoded = _case()
    memory, start = decoder.prepare(encoded), torch.zeros(BATCH, D_S, dtype=torch.float64)
    state = decoder.start(start)
    one = decoder.step(inputs[:, 0], memory, state)
    other = decoder.step(inputs[:, 0] + 1, memory, state)
    assert torch.equal(one.weights, other.weights)
    assert not torch.equal(one.state.hidden, other.state.hidden)


def test_a_closed_update_gate_keeps_the_state():
    # z weighs the candidate, the reverse of PyTorch's GRU.
    decoder, inputs, encoded = _case(bias=True)
    torch.nn.init.constant_(decoder.b_z, -1e4)
    start = torch.randn(BATCH, D_S, dtype=torch.float64)
    states = decoder(inputs, decoder.prepare(encoded), start).states
    assert torch.equal(states, start.unsqueeze(1).expand_as(states))


def test_the_papers_initialisation_is_appendix_b1():
    torch.manual_seed(109)
    decoder = PaperBahdanauDecoder(101, 103, 214, 107, d_maxout=53, bias=True)
    decoder.initialize_as_paper()
    p = dict(decoder.named_parameters())
    for name in ("U", "U_z", "U_r"):
        torch.testing.assert_close(p[name] @ p[name].T, torch.eye(103), rtol=0, atol=1e-5)
    for name in ("b", "b_z", "b_r", "b_s", "b_o", "attention.v_a"):
        assert not p[name].any(), name
    for name in ("W", "C_z", "W_s", "V_o", "C_o", "U_o"):
        assert 0.009 < p[name].std().item() < 0.011, name
    for name in ("attention.W_a", "attention.U_a"):
        assert 0.0009 < p[name].std().item() < 0.0011, name


def test_an_encoder_state_without_two_halves_is_refused():
    with pytest.raises(ShapeError) as caught:
        PaperBahdanauDecoder(D_IN, D_S, 13, D_ATTN)
    assert str(caught.value) == (
        "PaperBahdanauDecoder(): `d_h` has no two halves\n"
        "  expected  an even d_h: a forward and a backward half\n"
        "  got       d_h=13\n"
        "  because   s_0 is made of the backward half of the first encoder state"
    )


def test_a_vocabulary_without_a_maxout_layer_is_refused():
    with pytest.raises(ConventionError) as caught:
        PaperBahdanauDecoder(D_IN, D_S, D_H, D_ATTN, d_vocab=D_VOCAB)
    assert str(caught.value) == (
        "PaperBahdanauDecoder(): `d_vocab` needs `d_maxout`\n"
        "  expected  d_maxout=a size beside d_vocab\n"
        "  got       d_maxout=None, d_vocab=23\n"
        "  because   W_o reads the maxout layer"
    )
