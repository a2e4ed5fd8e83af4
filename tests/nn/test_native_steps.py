"""Which decoders step natively, and that their numbers do not depend on it."""

import pytest
import torch

from regard.kernels import attend_op, native, steps
from regard.nn import (
    AdditiveAttention,
    BahdanauDecoder,
    InputFeedingDecoder,
    LuongAttention,
    LuongDecoder,
    PaperBahdanauDecoder,
)

BATCH, T_ENC, D_IN, D_S, D_H, D_ATTN = 3, 7, 5, 11, 14, 13

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.reason()))

DECODERS = {
    "bahdanau": lambda: BahdanauDecoder(D_IN, D_S, D_H, D_ATTN),
    "paper": lambda: PaperBahdanauDecoder(D_IN, D_S, D_H, D_ATTN),
    "luong concat": lambda: LuongDecoder(D_IN, D_S, D_H, score="concat", d_attn=D_ATTN),
    "input feeding": lambda: InputFeedingDecoder(D_IN, D_S, D_H, score="concat", d_attn=D_ATTN),
}


@pytest.fixture
def native_steps(monkeypatch):
    """Native for any amount of work; and how often a step ran."""
    monkeypatch.setenv("REGARD_KERNELS", "native")
    found = []

    def counted(*given, **addresses):
        found.append(given)
        return real(*given, **addresses)

    real = steps.step_forward
    monkeypatch.setattr(steps, "step_forward", counted)
    return found


def _source():
    torch.manual_seed(41)
    return torch.randn(BATCH, T_ENC, D_H), torch.tensor([7, 3, 0])


def _decode(decoder, steps=3):
    torch.manual_seed(43)
    memory = decoder.prepare(*_source())
    state, outputs = decoder.start(torch.randn(BATCH, D_S)), []
    for _ in range(steps):
        output, state, weights = decoder.step(torch.randn(BATCH, D_IN), memory, state)
        outputs += [output, weights]
    return outputs


@pytest.mark.parametrize("kind", DECODERS)
def test_a_decoder_steps_natively_without_gradients_and_gives_the_same(
    native_steps, monkeypatch, kind
):
    torch.manual_seed(37)
    decoder = DECODERS[kind]()
    with torch.inference_mode():
        fast = _decode(decoder)
    assert len(native_steps) == 3
    trained = _decode(decoder)
    assert len(native_steps) == 3
    monkeypatch.setenv("REGARD_KERNELS", "off")
    with torch.inference_mode():
        plain = _decode(decoder)
    assert len(native_steps) == 3
    for mine, recorded, expected in zip(fast, trained, plain, strict=True):
        assert recorded.requires_grad
        torch.testing.assert_close(mine, expected, rtol=0, atol=5e-6)
        torch.testing.assert_close(recorded.detach(), expected, rtol=0, atol=5e-6)


@pytest.mark.parametrize("kind", DECODERS)
def test_a_beam_search_selects_what_was_prepared(native_steps, kind):
    torch.manual_seed(37)
    decoder, order = DECODERS[kind](), torch.tensor([1, 0, 1])
    with torch.inference_mode():
        memory = decoder.prepare(*_source())
        given, start = torch.randn(BATCH, D_IN), decoder.start(torch.randn(BATCH, D_S))
        _, state, _ = decoder.step(given, memory, start)
        output, _, weights = decoder.step(given, memory, state)
        chosen = decoder.step(given[order], memory.select(order), state.select(order))
    assert len(native_steps) == 3
    torch.testing.assert_close(chosen.output, output[order], rtol=0, atol=1e-6)
    torch.testing.assert_close(chosen.weights, weights[order], rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda **options: AdditiveAttention(D_S, D_H, D_ATTN, **options),
        lambda **options: LuongAttention(D_S, D_H, "concat", D_ATTN, **options),
    ],
    ids=["additive", "concat"],
)
def test_a_mask_by_query_or_another_normalizer_takes_the_other_path(native_steps, make):
    torch.manual_seed(37)
    key, lengths = _source()
    query, mask = torch.randn(BATCH, 1, D_S), torch.rand(BATCH, 1, T_ENC) < 0.7
    with torch.inference_mode():
        module = make()
        alone = module(query, key, mask=mask, key_lengths=lengths)
        by_memory = module(query, module.prepare(key, key_lengths=lengths), mask=mask)
        assert native_steps == []
        assert (alone.weights[~mask] == 0).all()
        torch.testing.assert_close(by_memory, alone)
        make(normalizer="sparsemax")(query, key, key_lengths=lengths)
        assert native_steps == []
        make()(query, key, key_lengths=lengths)
        assert len(native_steps) == 1


def test_a_frozen_v_does_not_cost_the_other_parameters_their_gradient(native_steps):
    attention = AdditiveAttention(D_S, D_H, D_ATTN)
    attention.v_a.requires_grad_(False)
    attention.U_a.requires_grad_(False)
    attention(torch.randn(BATCH, 1, D_S), _source()[0]).context.sum().backward()
    assert native_steps == []
    assert (attention.W_a.grad != 0).any()


def test_a_key_mask_reaches_the_native_scores(native_steps, monkeypatch):
    found = []
    real = attend_op.attend_at

    def seen(arrays, sizes, d_v):
        found.append(arrays.key_mask is not None)
        return real(arrays, sizes, d_v)

    monkeypatch.setattr(attend_op, "attend_at", seen)
    attention = AdditiveAttention(D_S, D_H, D_ATTN)
    key, lengths = _source()
    attention(torch.randn(BATCH, 2, D_S), key, key_lengths=lengths)
    attention(torch.randn(BATCH, 2, D_S), key)
    assert found == [True, False]
