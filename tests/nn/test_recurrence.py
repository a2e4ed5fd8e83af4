"""Decoders with an LSTM, and with several layers: the same contract as with one GRU."""

import numpy as np
import pytest
import torch

from regard.errors import ConventionError, ShapeError
from regard.nn import (
    BahdanauDecoder,
    CoverageDecoder,
    InputFeedingDecoder,
    LocalLuongDecoder,
    LocationDecoder,
    LuongDecoder,
    MonotonicDecoder,
    PlainDecoder,
)

BATCH, T_DEC, T_ENC, D_IN, D_S, D_H, D_ATTN = 3, 5, 7, 2, 11, 13, 17
LENGTHS = torch.tensor([7, 3, 0])
SIZES = (D_IN, D_S, D_H)
SMALL = (2, 2, 3)

MAKERS = {
    "plain": lambda d, **o: PlainDecoder(*d[:2], **o),
    "bahdanau": lambda d, **o: BahdanauDecoder(*d, D_ATTN, **o),
    "dot": lambda d, **o: LuongDecoder(d[0], d[1], d[1], **o),
    "general": lambda d, **o: LuongDecoder(*d, score="general", **o),
    "concat": lambda d, **o: LuongDecoder(*d, score="concat", d_attn=D_ATTN, **o),
    "input feeding": lambda d, **o: InputFeedingDecoder(*d, score="general", **o),
    "local-m": lambda d, **o: LocalLuongDecoder(*d, kind="m", D=2, score="general", **o),
    "local-p": lambda d, **o: LocalLuongDecoder(*d, kind="p", D=2, score="general", **o),
    "coverage": lambda d, **o: CoverageDecoder(*d, D_ATTN, **o),
    "location": lambda d, **o: LocationDecoder(*d, D_ATTN, k=2, r=3, **o),
    "monotonic": lambda d, **o: MonotonicDecoder(*d, D_ATTN, noise=0.0, **o),
}
RECURRENCES = [("lstm", 1), ("lstm", 2), ("gru", 3)]
ALL = pytest.mark.parametrize("kind", list(MAKERS))
BOTH = pytest.mark.parametrize(("cell", "layers"), RECURRENCES)


def _decoder(kind, cell, layers, dtype=torch.float64, sizes=SIZES):
    torch.manual_seed(61)
    return MAKERS[kind](sizes, cell=cell, layers=layers).to(dtype)


def _given(decoder, dtype=torch.float64, T_dec=T_DEC):
    torch.manual_seed(67)
    return (
        torch.randn(BATCH, T_dec, D_IN, dtype=dtype),
        torch.randn(BATCH, T_ENC, decoder.d_h or D_H, dtype=dtype),
        torch.randn(BATCH, decoder.d_state, dtype=dtype),
    )


def _stepped(decoder, inputs, memory, start):
    state, found = decoder.start(start), []
    for given in inputs.unbind(1):
        output, state, weights = decoder.step(given, memory, state)
        assert state.hidden.shape == (len(inputs), decoder.d_state)
        found.append((output,) if weights is None else (output, weights))
    return [torch.stack(each, 1) for each in zip(*found, strict=True)]


@ALL
@BOTH
def test_one_step_at_a_time_equals_the_whole_sequence_and_so_do_the_gradients(
    kind, cell, layers
):
    decoder = _decoder(kind, cell, layers)
    leaves = [x.requires_grad_() for x in _given(decoder)]
    inputs, encoded, start = leaves
    leaves += decoder.parameters()
    memory = decoder.prepare(encoded, LENGTHS)
    whole = decoder(inputs, memory, start)
    assert whole.states.shape == (BATCH, T_DEC, D_S)
    stepped = _stepped(decoder, inputs, memory, start)
    for mine, theirs in zip(stepped, (whole.outputs, whole.weights), strict=False):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)
    upstream = torch.randn_like(whole.outputs)
    got, expected = (
        torch.autograd.grad(x, leaves, upstream, retain_graph=True, materialize_grads=True)
        for x in (whole.outputs, stepped[0])
    )
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-11)


@ALL
@BOTH
def test_every_gradient_agrees_with_finite_differences(kind, cell, layers):
    decoder = _decoder(kind, cell, layers, sizes=SMALL)
    names = [name for name, _ in decoder.named_parameters()]
    shapes = (2, 3, 2), (2, 3, decoder.d_h or 3), (2, decoder.d_state)
    given = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]

    def run(inputs, encoded, start, *parameters):
        swapped = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(
            _Whole(decoder), _under(swapped), (inputs, encoded, start)
        )

    assert torch.autograd.gradcheck(run, (*given, *decoder.parameters()), fast_mode=True)


def _under(parameters):
    return {f"decoder.{name}": value for name, value in parameters.items()}


class _Whole(torch.nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder

    def forward(self, inputs, encoded, start):
        memory = self.decoder.prepare(encoded, torch.tensor([3, 2]))
        return self.decoder(inputs, memory, start).outputs


@ALL
@BOTH
def test_what_padding_holds_and_how_much_there_is_changes_nothing(kind, cell, layers):
    decoder = _decoder(kind, cell, layers).eval()
    inputs, encoded, start = _given(decoder)
    whole = decoder(inputs, decoder.prepare(encoded, LENGTHS), start)
    spoilt = encoded.clone()
    spoilt[1, 3:] = torch.nan
    spoilt[2] = torch.inf
    again = decoder(inputs, decoder.prepare(spoilt, LENGTHS), start)
    assert torch.equal(whole.outputs, again.outputs)
    alone = decoder(inputs[1:2], decoder.prepare(encoded[1:2, :3]), start[1:2])
    torch.testing.assert_close(whole.outputs[1:2], alone.outputs, rtol=0, atol=1e-12)


@ALL
@BOTH
def test_selected_examples_go_on_as_they_would_have(kind, cell, layers):
    decoder = _decoder(kind, cell, layers).eval()
    inputs, encoded, start = _given(decoder)
    order = torch.tensor([1, 1, 0])
    memory, state = decoder.prepare(encoded, LENGTHS), decoder.start(start)
    _, state, _ = decoder.step(inputs[:, 0], memory, state)
    plain = decoder.step(inputs[:, 1], memory, state)
    chosen = decoder.step(inputs[order, 1], memory.select(order), state.select(order))
    torch.testing.assert_close(chosen.output, plain.output[order], rtol=0, atol=1e-12)
    torch.testing.assert_close(
        chosen.state.hidden, plain.state.hidden[order], rtol=0, atol=1e-12
    )


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _lstm(p, prefix, suffix, x, s, m):
    """Hochreiter and Schmidhuber's cell with a forget gate, of one example."""
    W, U = p[f"{prefix}weight_ih{suffix}"], p[f"{prefix}weight_hh{suffix}"]
    gates = W @ x + U @ s + p[f"{prefix}bias_ih{suffix}"] + p[f"{prefix}bias_hh{suffix}"]
    i, f, g, o = gates.reshape(4, -1)
    m = _sigmoid(f) * m + _sigmoid(i) * np.tanh(g)
    return _sigmoid(o) * np.tanh(m), m


def _softmax(e):
    e = np.exp(e - e.max())
    return e / e.sum()


def _by_hand(kind, decoder, inputs, H, start):
    """Two layers of LSTM and a paper's attention, one step at a time, for one example."""
    p = {name: x.detach().numpy() for name, x in decoder.named_parameters()}
    s, m, s2, m2 = start.reshape(4, D_S)
    fed, outputs = np.zeros(D_S), []
    for x in inputs:
        if kind == "bahdanau":
            query = p["attention.W_a"] @ s  # the state before the step, of the lowest layer
            keys = H @ p["attention.U_a"].T
            a = _softmax(np.tanh(query + keys) @ p["attention.v_a"])
            c = a @ H
            s, m = _lstm(p, "cell.", "", np.concatenate([x, c]), s, m)
            s2, m2 = _lstm(p, "upper.rnns.0.", "_l0", np.concatenate([s, c]), s2, m2)
            outputs.append(np.concatenate([s2, c]))
            continue
        if kind == "input feeding":
            s, m = _lstm(p, "cell.", "", np.concatenate([x, fed]), s, m)
            s2, m2 = _lstm(p, "higher.0.", "", s, s2, m2)
        else:
            s, m = _lstm(p, "lstm.", "_l0", x, s, m)
            s2, m2 = _lstm(p, "lstm.", "_l1", s, s2, m2)
        if kind == "plain":
            outputs.append(s2)
            continue
        a = _softmax(H @ p["attention.W"].T @ s2)  # the state after the step, of the highest
        fed = np.tanh(p["W_c"] @ np.concatenate([a @ H, s2]))
        outputs.append(fed)
    return np.array(outputs)


@pytest.mark.parametrize("kind", ["plain", "bahdanau", "general", "input feeding"])
def test_two_layers_of_lstm_compute_their_papers_equations(kind):
    decoder = _decoder(kind, "lstm", 2)
    inputs, encoded, start = _given(decoder)
    outputs = decoder(inputs, decoder.prepare(encoded), start).outputs.detach().numpy()
    for b in range(BATCH):
        expected = _by_hand(kind, decoder, *(x[b].numpy() for x in (inputs, encoded, start)))
        np.testing.assert_allclose(outputs[b], expected, rtol=0, atol=1e-12)


@ALL
def test_a_sequence_without_steps_is_empty(kind):
    decoder = _decoder(kind, "lstm", 2)
    inputs, encoded, start = _given(decoder, T_dec=0)
    decoded = decoder(inputs, decoder.prepare(encoded, LENGTHS), start)
    assert decoded.outputs.shape == (BATCH, 0, decoder.d_out)
    assert decoded.states.shape == (BATCH, 0, D_S)


@ALL
def test_what_lies_between_layers_is_dropped_in_training_alone(kind):
    torch.manual_seed(61)
    decoder = MAKERS[kind](SIZES, cell="lstm", layers=2, dropout=0.5).double()
    inputs, encoded, start = _given(decoder)
    memory = decoder.prepare(encoded)
    one, two = (decoder(inputs, memory, start).outputs for _ in range(2))
    assert not torch.equal(one, two)
    decoder.eval()
    one, two = (decoder(inputs, memory, start).outputs for _ in range(2))
    assert torch.equal(one, two)


def test_the_cell_is_no_part_of_what_attention_asks_with():
    decoder = _decoder("bahdanau", "lstm", 1)
    inputs, encoded, start = _given(decoder)
    other = start.clone()
    other[:, D_S:] += 1
    memory = decoder.prepare(encoded)
    one = decoder.step(inputs[:, 0], memory, decoder.start(start))
    two = decoder.step(inputs[:, 0], memory, decoder.start(other))
    assert torch.equal(one.weights, two.weights)
    assert not torch.allclose(one.output, two.output)


@ALL
def test_an_unknown_cell_is_refused_by_name(kind):
    with pytest.raises(ConventionError, match='expected  cell="gru" or "lstm"'):
        MAKERS[kind](SIZES, cell="rnn")
    with pytest.raises(ShapeError, match="`layers` is not a size"):
        MAKERS[kind](SIZES, layers=0)


def test_a_first_state_of_h_alone_is_refused_with_the_size_that_fits():
    decoder = _decoder("general", "lstm", 2)
    with pytest.raises(ShapeError) as caught:
        decoder.start(torch.zeros(BATCH, D_S, dtype=torch.float64))
    assert str(caught.value).splitlines()[1:3] == [
        "  expected  initial_state (batch=3, d_state=44)",
        "  got       initial_state (3, 11)",
    ]
