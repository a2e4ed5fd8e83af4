import copy
import math

import numpy as np
import pytest
import torch

from regard.errors import BackendError, ConventionError, MaskError, ShapeError
from regard.nn import BahdanauDecoder, Decoded, DecoderState, LuongDecoder, PlainDecoder
from regard.nn.memory import Memory

BATCH, T_DEC, T_ENC, D_IN, D_S, D_H, D_ATTN = 3, 5, 7, 2, 11, 13, 17
LENGTHS = torch.tensor([7, 3, 0])
KINDS = ["bahdanau", "dot", "general", "concat", "plain"]


def _decoder(kind, dtype=torch.float64):
    torch.manual_seed(61)
    if kind == "bahdanau":
        decoder = BahdanauDecoder(D_IN, D_S, D_H, D_ATTN)
    elif kind == "plain":
        decoder = PlainDecoder(D_IN, D_S)
    elif kind == "dot":
        decoder = LuongDecoder(D_IN, D_S, D_S)
    else:
        d_attn = D_ATTN if kind == "concat" else None
        decoder = LuongDecoder(D_IN, D_S, D_H, score=kind, d_attn=d_attn)
    return decoder.to(dtype)


def _given(decoder, dtype=torch.float64, T_dec=T_DEC):
    torch.manual_seed(67)
    return (
        torch.randn(BATCH, T_dec, D_IN, dtype=dtype),
        torch.randn(BATCH, T_ENC, decoder.d_h or D_H, dtype=dtype),
        torch.randn(BATCH, D_S, dtype=dtype),
    )


def _run(kind, dtype=torch.float64):
    decoder = _decoder(kind, dtype)
    inputs, encoded, start = _given(decoder, dtype)
    return decoder, decoder(inputs, decoder.prepare(encoded, LENGTHS), start)


def _gru(x, s, W_ih, W_hh, b_ih, b_hh):
    d_s = len(s)
    i, h = W_ih @ x + b_ih, W_hh @ s + b_hh
    r = 1 / (1 + np.exp(-(i[:d_s] + h[:d_s])))
    z = 1 / (1 + np.exp(-(i[d_s : 2 * d_s] + h[d_s : 2 * d_s])))
    n = np.tanh(i[2 * d_s :] + r * h[2 * d_s :])
    return (1 - z) * n + z * s


def _attend(scores, states, length):
    e = np.exp(np.array(scores[:length]))
    weights = np.zeros(len(scores))
    weights[:length] = e / e.sum() if length else e
    return weights @ states, weights


def _by_hand(kind, decoder):
    """Each decoder's equations, one example and one step at a time."""
    p = {name: x.detach().numpy() for name, x in decoder.named_parameters()}
    inputs, encoded, start = (x.numpy() for x in _given(decoder))
    rows = []
    for b, length in enumerate(LENGTHS.tolist()):
        s, H = start[b], encoded[b]
        for x in inputs[b]:
            if kind == "bahdanau":
                query = p["attention.W_a"] @ s  # s_{t-1}
                keys = H @ p["attention.U_a"].T
                scores = [p["attention.v_a"] @ np.tanh(query + k) for k in keys]
                c, a = _attend(scores, H, length)
                cell = [
                    p[f"cell.{n}"] for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
                ]
                s = _gru(np.concatenate([x, c]), s, *cell)
                rows.append((np.concatenate([s, c]), s, c, a))
                continue
            gru = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
            s = _gru(x, s, *(p[f"gru.{n}"] for n in gru))
            if kind == "plain":
                rows.append((s, s))
                continue
            if kind == "dot":
                scores = [s @ h for h in H]
            elif kind == "general":
                scores = [s @ p["attention.W"] @ h for h in H]
            else:
                W_c, v_c = p["attention.W_c"], p["attention.v_c"]
                scores = [v_c @ np.tanh(W_c @ np.concatenate([s, h])) for h in H]
            c, a = _attend(scores, H, length)
            rows.append((np.tanh(p["W_c"] @ np.concatenate([c, s])), s, c, a))
    return [np.array(each).reshape(BATCH, T_DEC, -1) for each in zip(*rows, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_a_decoder_computes_its_papers_equations(kind):
    decoder, decoded = _run(kind)
    expected = _by_hand(kind, decoder)
    got = [each for each in decoded if each is not None]
    assert len(got) == len(expected)
    for mine, theirs in zip(got, expected, strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), theirs, rtol=0, atol=1e-12)
    assert decoded.outputs.shape == (BATCH, T_DEC, decoder.d_out)


@pytest.mark.parametrize("grad", [True, False], ids=["with gradients", "without"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_step_at_a_time_equals_the_whole_sequence(kind, grad):
    decoder = _decoder(kind)
    inputs, encoded, start = _given(decoder)
    with torch.set_grad_enabled(grad):
        memory = decoder.prepare(encoded, LENGTHS)
        whole = decoder(inputs, memory, start)
        state = decoder.start(start)
        for t in range(T_DEC):
            output, state, weights = decoder.step(inputs[:, t], memory, state)
            torch.testing.assert_close(output, whole.outputs[:, t], rtol=0, atol=1e-12)
            torch.testing.assert_close(state.hidden, whole.states[:, t], rtol=0, atol=1e-12)
            assert (weights is None) is (kind == "plain")
            if weights is not None:
                torch.testing.assert_close(weights, whole.weights[:, t], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_steps(kind):
    decoder = _decoder(kind)
    inputs, encoded, start = (x.requires_grad_() for x in _given(decoder))
    leaves = [inputs, encoded, start, *decoder.parameters()]
    upstream = torch.randn(BATCH, T_DEC, decoder.d_out, dtype=torch.float64)
    whole = decoder(inputs, decoder.prepare(encoded, LENGTHS), start).outputs
    got = torch.autograd.grad(whole, leaves, upstream, materialize_grads=True)
    memory, state, outputs = decoder.prepare(encoded, LENGTHS), decoder.start(start), []
    for t in range(T_DEC):
        output, state, _ = decoder.step(inputs[:, t], memory, state)
        outputs.append(output)
    stepped = torch.stack(outputs, 1)
    expected = torch.autograd.grad(stepped, leaves, upstream, materialize_grads=True)
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", ["bahdanau", "dot", "general", "concat"])
def test_every_gradient_agrees_with_finite_differences(kind):
    torch.manual_seed(71)
    if kind == "bahdanau":
        decoder = BahdanauDecoder(2, 2, 3, 5).double()
    else:
        d_attn = 5 if kind == "concat" else None
        d_h = 2 if kind == "dot" else 3
        decoder = LuongDecoder(2, 2, d_h, score=kind, d_attn=d_attn).double()
    names = [name for name, _ in decoder.named_parameters()]
    shapes = (2, 2, 2), (2, 3, decoder.d_h), (2, 2)
    given = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    module = _WholeModel(decoder)

    def run(*leaves):
        params = {f"decoder.{n}": p for n, p in zip(names, leaves[3:], strict=True)}
        return tuple(torch.func.functional_call(module, params, leaves[:3]))

    assert torch.autograd.gradcheck(run, (*given, *decoder.parameters()))


class _WholeModel(torch.nn.Module):
    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder

    def forward(self, inputs, encoded, start):
        memory = self.decoder.prepare(encoded, torch.tensor([3, 1]))
        decoded = self.decoder(inputs, memory, start)
        return decoded.outputs, decoded.weights


@pytest.mark.parametrize("kind", ["bahdanau", "dot", "general", "concat"])
def test_padding_has_no_weight_and_an_empty_source_no_context(kind):
    _, decoded = _run(kind)
    assert (decoded.weights[1, :, 3:] == 0).all()
    assert (decoded.weights[1, :, :3] > 0).all()
    assert (decoded.weights[2] == 0).all()
    assert (decoded.contexts[2] == 0).all()
    rows = decoded.weights[:2].sum(-1)
    torch.testing.assert_close(rows, torch.ones_like(rows))


@pytest.mark.parametrize("poison", [math.nan, 1e30])
@pytest.mark.parametrize("kind", KINDS)
def test_what_padding_holds_changes_neither_result_nor_gradient(kind, poison):
    decoder = _decoder(kind)
    found = []
    for fill in (0.25, poison):
        inputs, encoded, start = _given(decoder)
        encoded[1, 3:] = encoded[2] = fill
        leaves = [x.requires_grad_() for x in (inputs, encoded, start)]
        decoder.zero_grad()
        decoded = decoder(inputs, decoder.prepare(encoded, LENGTHS), start)
        decoded.outputs.square().sum().backward()
        grads = [x.grad for x in (*leaves, *decoder.parameters()) if x.grad is not None]
        found.append([*(x.detach() for x in decoded if x is not None), *grads])
    assert all(x.isfinite().all() for x in found[0])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("kind", ["bahdanau", "dot"])
def test_a_source_alone_decodes_as_it_does_in_a_padded_batch(kind):
    decoder = _decoder(kind)
    inputs, encoded, start = _given(decoder)
    batch = decoder(inputs, decoder.prepare(encoded, LENGTHS), start)
    alone = decoder(inputs[1:2], decoder.prepare(encoded[1:2, :3]), start[1:2])
    torch.testing.assert_close(alone.outputs[0], batch.outputs[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_beam_search_can_reorder_and_repeat_memory_and_state(kind):
    decoder = _decoder(kind)
    inputs, encoded, start = _given(decoder)
    memory, state = decoder.prepare(encoded, LENGTHS), decoder.start(start)
    order = torch.tensor([1, 1, 0, 2])
    plain = decoder.step(inputs[:, 0], memory, state)
    chosen = decoder.step(inputs[order, 0], memory.select(order), state.select(order))
    torch.testing.assert_close(chosen.output, plain.output[order], rtol=0, atol=1e-12)
    torch.testing.assert_close(
        chosen.state.hidden, plain.state.select(order).hidden, rtol=0, atol=1e-12
    )


def test_bahdanau_asks_with_the_state_before_the_step_and_luong_with_the_one_after():
    # The first step's weights: Bahdanau's cannot depend on the input, Luong's must.
    for kind, depends in (("bahdanau", False), ("general", True)):
        decoder = _decoder(kind)
        inputs, encoded, start = _given(decoder)
        memory, state = decoder.prepare(encoded), decoder.start(start)
        one = decoder.step(inputs[:, 0], memory, state).weights
        other = decoder.step(inputs[:, 0] + 1, memory, state).weights
        assert torch.equal(one, other) is not depends, kind


def test_a_bare_tensor_is_no_state():
    decoder = _decoder("bahdanau")
    inputs, encoded, start = _given(decoder)
    with pytest.raises(ConventionError) as caught:
        decoder.step(inputs[:, 0], decoder.prepare(encoded), start)
    assert str(caught.value) == (
        "BahdanauDecoder.step(): `state` is not this decoder's\n"
        "  expected  what start(initial_state) or the step before returned\n"
        "  got       Tensor\n"
        "  because   the decoder forms its query itself, from the right moment in time"
    )


def test_another_decoders_state_or_memory_is_refused():
    one, other = _decoder("bahdanau"), _decoder("general")
    inputs, encoded, start = _given(one)
    with pytest.raises(ConventionError, match="the state of another LuongDecoder"):
        one.step(inputs[:, 0], one.prepare(encoded), other.start(start))
    with pytest.raises(ConventionError, match="the memory of another LuongDecoder"):
        one.step(inputs[:, 0], other.prepare(encoded), one.start(start))
    with pytest.raises(ConventionError, match="the memory of another LuongDecoder"):
        one(inputs, other.prepare(encoded), start)
    with pytest.raises(ConventionError, match="`memory` is no Memory"):
        one(inputs, encoded, start)


def test_states_and_memories_cannot_be_changed():
    decoder = _decoder("bahdanau")
    _, encoded, start = _given(decoder)
    with pytest.raises(AttributeError):
        decoder.start(start).hidden = start
    with pytest.raises(AttributeError):
        decoder.prepare(encoded).key = encoded


def test_a_copied_decoder_accepts_only_its_own_memories():
    decoder = _decoder("bahdanau")
    clone = copy.deepcopy(decoder)
    inputs, encoded, start = _given(decoder)
    with pytest.raises(ConventionError, match="another BahdanauDecoder"):
        clone(inputs, decoder.prepare(encoded), start)
    expected = decoder(inputs, decoder.prepare(encoded), start).outputs
    assert torch.equal(clone(inputs, clone.prepare(encoded), start).outputs, expected)


def test_a_dot_decoder_of_two_sizes_is_refused_at_construction():
    with pytest.raises(ShapeError, match=r'score="general" compares the two sizes'):
        LuongDecoder(D_IN, 11, 13)


@pytest.mark.parametrize("kind", KINDS)
def test_arguments_that_do_not_fit_are_named(kind):
    decoder = _decoder(kind)
    inputs, encoded, start = _given(decoder)
    memory = decoder.prepare(encoded)
    name = type(decoder).__name__
    with pytest.raises(
        ShapeError, match=rf"{name}\(\): `inputs` does not fit the module on axis d_in"
    ):
        decoder(torch.cat([inputs, inputs], -1), memory, start)
    with pytest.raises(ShapeError, match="`inputs` does not fit `memory` on axis batch"):
        decoder(inputs[:1], memory, start)
    with pytest.raises(ShapeError, match="`initial_state` does not fit the module on axis d_s"):
        decoder(inputs, memory, start[:, 1:])
    with pytest.raises(
        ShapeError, match=r"start\(\): `initial_state` does not fit the module on axis d_s"
    ):
        decoder.start(start[:, 1:])
    with pytest.raises(ShapeError, match="`initial_state` has 3 axes, not 2"):
        decoder.start(start[None])
    with pytest.raises(ShapeError, match="`input` has 3 axes, not 2"):
        decoder.step(inputs, memory, decoder.start(start))
    with pytest.raises(
        ShapeError, match="`key_lengths` does not fit `encoder_states` on axis batch"
    ):
        decoder.prepare(encoded, LENGTHS[:2])
    with pytest.raises(MaskError, match="length outside the keys"):
        decoder.prepare(encoded, LENGTHS + 1)
    with pytest.raises(BackendError, match="`inputs` and the module differ in number type"):
        decoder(inputs.float(), memory, start)
    if kind != "plain":
        with pytest.raises(
            ShapeError, match="`encoder_states` does not fit the module on axis d_h"
        ):
            decoder.prepare(encoded[..., 1:])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", KINDS)
def test_half_types_are_finite_forward_and_backward(kind, dtype):
    decoder, decoded = _run(kind, dtype)
    decoded.outputs.sum().backward()
    assert decoded.outputs.dtype == dtype
    assert all(x.isfinite().all() for x in decoded if x is not None)
    assert all(p.grad.isfinite().all() for p in decoder.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_it_trains_and_steps_under_autocast(kind):
    decoder = _decoder(kind, torch.float32)
    inputs, encoded, start = _given(decoder, torch.float32)
    expected = decoder(inputs, decoder.prepare(encoded, LENGTHS), start).outputs
    with torch.autocast("cpu", dtype=torch.bfloat16):
        memory = decoder.prepare(encoded, LENGTHS)
        decoded = decoder(inputs, memory, start)
        stepped = decoder.step(inputs[:, 0], memory, decoder.start(start))
    decoded.outputs.float().sum().backward()
    assert all(p.grad.isfinite().all() for p in decoder.parameters())
    torch.testing.assert_close(decoded.outputs.float(), expected, rtol=0, atol=0.1)
    torch.testing.assert_close(stepped.output.float(), expected[:, 0], rtol=0, atol=0.1)


@pytest.mark.parametrize("kind", KINDS)
def test_float32_agrees_with_float64(kind):
    _, exact = _run(kind)
    decoder = _decoder(kind).float()
    inputs, encoded, start = (x.float() for x in _given(decoder))
    single = decoder(inputs, decoder.prepare(encoded, LENGTHS), start)
    torch.testing.assert_close(single.outputs.double(), exact.outputs, rtol=0, atol=5e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_no_step_at_all_gives_empty_results(kind):
    decoder = _decoder(kind)
    inputs, encoded, start = _given(decoder, T_dec=0)
    decoded = decoder(inputs, decoder.prepare(encoded, LENGTHS), start)
    assert decoded.outputs.shape == (BATCH, 0, decoder.d_out)
    assert decoded.states.shape == (BATCH, 0, D_S)
    if kind != "plain":
        assert decoded.contexts.shape == (BATCH, 0, decoder.d_h)
        assert decoded.weights.shape == (BATCH, 0, T_ENC)


def test_the_results_unpack_in_the_documented_order():
    decoder, decoded = _run("general")
    outputs, states, contexts, weights = decoded
    assert isinstance(decoded, Decoded)
    assert outputs.shape == (BATCH, T_DEC, D_S)
    assert states.shape == (BATCH, T_DEC, D_S)
    assert contexts.shape == (BATCH, T_DEC, D_H)
    assert weights.shape == (BATCH, T_DEC, T_ENC)
    _, encoded, start = _given(decoder)
    assert isinstance(decoder.start(start), DecoderState)
    assert isinstance(decoder.prepare(encoded), Memory)


def test_v_scale_reaches_the_attention():
    torch.manual_seed(73)
    decoder = BahdanauDecoder(2, 3, 5, 10007, v_scale=1.0)
    largest = decoder.attention.v_a.abs().max().item() * math.sqrt(10007)
    assert 0.97 < largest <= 1.0


def test_the_bahdanau_decoder_compiles_in_one_piece():
    # The others hold an nn.GRU, around which PyTorch's compiler breaks the graph.
    decoder = _decoder("bahdanau", torch.float32)
    inputs, encoded, start = _given(decoder, torch.float32)

    def model(inputs, encoded, start):
        return decoder(inputs, decoder.prepare(encoded, LENGTHS), start).outputs

    got = torch.compile(model, fullgraph=True, backend="eager")(inputs, encoded, start)
    torch.testing.assert_close(got, model(inputs, encoded, start), rtol=0, atol=1e-5)
