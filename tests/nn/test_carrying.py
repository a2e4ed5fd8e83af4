"""The contract that every decoder of a paper keeps, whatever it carries between its steps."""

import copy
import math

import pytest
import torch

from regard.errors import ConventionError, ShapeError
from regard.nn import (
    CarryingState,
    CoverageDecoder,
    DecoderState,
    InputFeedingDecoder,
    LocalLuongDecoder,
    LocationDecoder,
    MonotonicDecoder,
    PaperBahdanauDecoder,
)

BATCH, T_DEC, T_ENC, D_IN, D_S, D_H, D_ATTN = 3, 5, 7, 2, 11, 26, 17
LENGTHS = torch.tensor([7, 3, 0])
SIZES = {"d_in": D_IN, "d_s": D_S, "d_h": D_H, "d_attn": D_ATTN}
SMALL = {"d_in": 2, "d_s": 2, "d_h": 4, "d_attn": 5}


def _luong(cls, sizes, **options):
    return cls(sizes["d_in"], sizes["d_s"], sizes["d_h"], score="general", **options)


MAKERS = {
    "input feeding": lambda sizes: _luong(InputFeedingDecoder, sizes),
    "input feeding, sparse": lambda sizes: _luong(
        InputFeedingDecoder, sizes, normalizer="sparsemax"
    ),
    "local-m": lambda sizes: _luong(LocalLuongDecoder, sizes, kind="m", D=2),
    "local-p": lambda sizes: _luong(LocalLuongDecoder, sizes, kind="p", D=2),
    "coverage": lambda sizes: CoverageDecoder(**sizes),
    "location": lambda sizes: LocationDecoder(**sizes, k=2, r=3),
    "location, smoothed": lambda sizes: LocationDecoder(
        **sizes, k=2, r=5, sharpening=1.5, normalizer="smoothed"
    ),
    "monotonic": lambda sizes: MonotonicDecoder(**sizes, noise=0.0),
    "monotonic, recursive": lambda sizes: MonotonicDecoder(
        **sizes, noise=0.0, method="recursive"
    ),
    "paper": lambda sizes: PaperBahdanauDecoder(**sizes),
    "paper, deep output": lambda sizes: PaperBahdanauDecoder(
        **sizes, d_maxout=3, d_vocab=5, bias=True
    ),
}
ALL = pytest.mark.parametrize("kind", list(MAKERS))
SUMS_TO_ONE = {
    "input feeding",
    "input feeding, sparse",
    "coverage",
    "location",
    "paper",
    "paper, deep output",
}


def _decoder(kind, dtype=torch.float64, sizes=SIZES):
    torch.manual_seed(61)
    return MAKERS[kind](sizes).to(dtype)


def _given(dtype=torch.float64, T_dec=T_DEC):
    torch.manual_seed(67)
    return (
        torch.randn(BATCH, T_dec, D_IN, dtype=dtype),
        torch.randn(BATCH, T_ENC, D_H, dtype=dtype),
        torch.randn(BATCH, D_S, dtype=dtype),
    )


def _stepped(decoder, inputs, memory, start):
    state, found = decoder.start(start), []
    for given in inputs.unbind(1):
        output, state, weights = decoder.step(given, memory, state)
        found.append((output, state.hidden, weights))
    return [torch.stack(each, 1) for each in zip(*found, strict=True)]


@ALL
def test_one_step_at_a_time_equals_the_whole_sequence_and_so_do_the_gradients(kind):
    decoder = _decoder(kind)
    leaves = [x.requires_grad_() for x in _given()]
    inputs, encoded, start = leaves
    leaves += decoder.parameters()
    memory = decoder.prepare(encoded, LENGTHS)
    whole = decoder(inputs, memory, start)
    stepped = _stepped(decoder, inputs, memory, start)
    for mine, theirs in zip(stepped, (whole.outputs, whole.states, whole.weights), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)
    upstream = torch.randn_like(whole.outputs)
    got, expected = (
        torch.autograd.grad(x, leaves, upstream, retain_graph=True, materialize_grads=True)
        for x in (whole.outputs, stepped[0])
    )
    for mine, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-11)


@ALL
def test_every_gradient_agrees_with_finite_differences(kind):
    decoder = _decoder(kind, sizes=SMALL)
    names = [name for name, _ in decoder.named_parameters()]
    shapes = (2, 3, 2), (2, 3, SMALL["d_h"]), (2, 2)
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
        memory = self.decoder.prepare(encoded, torch.tensor([3, 2]))
        decoded = self.decoder(inputs, memory, start)
        return decoded.outputs, decoded.weights


@ALL
def test_the_context_is_the_weighted_sum_and_padding_has_no_weight(kind):
    decoder = _decoder(kind)
    inputs, encoded, start = _given()
    outputs, states, contexts, weights = decoder(
        inputs, decoder.prepare(encoded, LENGTHS), start
    )
    assert outputs.shape == (BATCH, T_DEC, decoder.d_out)
    assert states.shape == (BATCH, T_DEC, D_S)
    torch.testing.assert_close(contexts, weights @ encoded, rtol=0, atol=1e-12)
    assert (weights >= 0).all()
    assert (weights[1, :, 3:] == 0).all()
    assert (weights[2] == 0).all()
    assert (contexts[2] == 0).all()
    rows = weights[:2].sum(-1)
    assert (rows[:, 0] > 0).all()
    if kind in SUMS_TO_ONE:
        torch.testing.assert_close(rows, torch.ones_like(rows))
    else:
        assert (rows <= 1 + 1e-12).all()


@ALL
@pytest.mark.parametrize("poison", [math.nan, 1e30])
def test_what_padding_holds_changes_neither_result_nor_gradient(kind, poison):
    decoder, found = _decoder(kind), []
    for fill in (0.25, poison):
        inputs, encoded, start = _given()
        encoded[1, 3:] = encoded[2] = fill
        leaves = [x.requires_grad_() for x in (inputs, encoded, start)]
        decoder.zero_grad()
        decoded = decoder(inputs, decoder.prepare(encoded, LENGTHS), start)
        decoded.outputs.square().sum().backward()
        grads = [x.grad for x in (*leaves, *decoder.parameters()) if x.grad is not None]
        found.append([*(x.detach() for x in decoded), *grads])
    assert all(x.isfinite().all() for x in found[0])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))
    assert not leaves[1].grad[2].any()
    assert leaves[1].grad[0].any()


@ALL
def test_a_source_alone_decodes_as_it_does_in_a_padded_batch(kind):
    decoder = _decoder(kind)
    inputs, encoded, start = _given()
    batch = decoder(inputs, decoder.prepare(encoded, LENGTHS), start)
    alone = decoder(inputs[1:2], decoder.prepare(encoded[1:2, :3]), start[1:2])
    torch.testing.assert_close(alone.outputs[0], batch.outputs[1], rtol=0, atol=1e-12)
    torch.testing.assert_close(alone.weights[0], batch.weights[1, :, :3], rtol=0, atol=1e-12)


@ALL
def test_search_can_reorder_and_repeat_memory_and_state_after_some_steps(kind):
    decoder = _decoder(kind)
    inputs, encoded, start = _given()
    memory, state = decoder.prepare(encoded, LENGTHS), decoder.start(start)
    order = torch.tensor([1, 1, 0, 2])
    for t in range(2):
        _, state, _ = decoder.step(inputs[:, t], memory, state)
    plain = decoder.step(inputs[:, 2], memory, state)
    chosen = decoder.step(inputs[order, 2], memory.select(order), state.select(order))
    torch.testing.assert_close(chosen.output, plain.output[order], rtol=0, atol=1e-12)
    torch.testing.assert_close(chosen.weights, plain.weights[order], rtol=0, atol=1e-12)
    fresh = decoder.start(start).select(order)
    assert torch.equal(fresh.hidden, start[order])


@ALL
def test_a_bare_tensor_or_another_decoders_state_or_memory_is_refused(kind):
    decoder, other = _decoder(kind), _decoder(kind)
    inputs, encoded, start = _given()
    memory = decoder.prepare(encoded)
    with pytest.raises(ConventionError, match="`state` is not this decoder's"):
        decoder.step(inputs[:, 0], memory, start)
    with pytest.raises(ConventionError, match=f"the state of another {type(other).__name__}"):
        decoder.step(inputs[:, 0], memory, other.start(start))
    with pytest.raises(ConventionError, match=f"the memory of another {type(other).__name__}"):
        decoder.step(inputs[:, 0], other.prepare(encoded), decoder.start(start))
    with pytest.raises(ShapeError, match="`initial_state` does not fit the module on axis d_s"):
        decoder.start(start[:, 1:])
    state = decoder.step(inputs[:, 0], memory, decoder.start(start)).state
    assert type(state) is (DecoderState if kind.startswith("paper") else CarryingState)
    with pytest.raises(AttributeError):
        state.hidden = start


@ALL
def test_a_copied_decoder_computes_the_same_with_its_own_memory(kind):
    decoder = _decoder(kind)
    clone = copy.deepcopy(decoder)
    inputs, encoded, start = _given()
    expected = decoder(inputs, decoder.prepare(encoded), start).outputs
    assert torch.equal(clone(inputs, clone.prepare(encoded), start).outputs, expected)
    with pytest.raises(ConventionError, match="another"):
        clone(inputs, decoder.prepare(encoded), start)


@ALL
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_finite_forward_and_backward(kind, dtype):
    decoder = _decoder(kind, dtype)
    inputs, encoded, start = _given(dtype)
    decoded = decoder(inputs, decoder.prepare(encoded, LENGTHS), start)
    decoded.outputs.sum().backward()
    assert all(x.dtype == dtype and x.isfinite().all() for x in decoded)
    assert all(p.grad.isfinite().all() for p in decoder.parameters() if p.grad is not None)


@ALL
def test_float32_agrees_with_float64(kind):
    found = []
    for dtype in (torch.float32, torch.float64):
        decoder = _decoder(kind).to(dtype)
        inputs, encoded, start = (x.to(dtype) for x in _given())
        found.append(decoder(inputs, decoder.prepare(encoded, LENGTHS), start).outputs.double())
    torch.testing.assert_close(*found, rtol=0, atol=5e-6)


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if not kind.startswith("local")])
def test_no_step_at_all_gives_empty_results(kind):
    decoder = _decoder(kind)
    inputs, encoded, start = _given(T_dec=0)
    outputs, states, contexts, weights = decoder(inputs, decoder.prepare(encoded), start)
    assert outputs.shape == (BATCH, 0, decoder.d_out)
    assert states.shape == (BATCH, 0, D_S)
    assert contexts.shape == (BATCH, 0, D_H)
    assert weights.shape == (BATCH, 0, T_ENC)


@ALL
def test_it_trains_and_steps_under_autocast(kind):
    decoder = _decoder(kind, torch.float32)
    inputs, encoded, start = _given(torch.float32)
    expected = decoder(inputs, decoder.prepare(encoded, LENGTHS), start).outputs
    with torch.autocast("cpu", dtype=torch.bfloat16):
        memory = decoder.prepare(encoded, LENGTHS)
        decoded = decoder(inputs, memory, start)
        output, state, _ = decoder.step(inputs[:, 0], memory, decoder.start(start))
        output = decoder.step(inputs[:, 1], memory, state).output
    decoded.outputs.float().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in decoder.parameters())
    torch.testing.assert_close(decoded.outputs.float(), expected, rtol=0, atol=0.15)
    torch.testing.assert_close(output.float(), expected[:, 1], rtol=0, atol=0.15)
