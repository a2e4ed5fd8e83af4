import numpy as np
import pytest
import torch

from regard.attention import reference, reference_variants
from regard.attention.coverage import coverage_before, coverage_loss
from regard.errors import ConventionError, ShapeError
from regard.nn import CoverageDecoder

BATCH, T_DEC, T_ENC, D_IN, D_S, D_H, D_ATTN = 3, 5, 7, 2, 11, 13, 17
LENGTHS = torch.tensor([7, 3, 0])


def _case():
    torch.manual_seed(113)
    decoder = CoverageDecoder(D_IN, D_S, D_H, D_ATTN).double()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter)
    shapes = (BATCH, T_DEC, D_IN), (BATCH, T_ENC, D_H), (BATCH, D_S)
    return decoder, *(torch.randn(shape, dtype=torch.float64) for shape in shapes)


def test_each_step_is_scored_with_the_weights_before_it():
    decoder, inputs, encoded, start = _case()
    decoded = decoder(inputs, decoder.prepare(encoded, LENGTHS), start)
    names = ("W_s", "W_h", "w_c", "b", "v")
    params = {name: getattr(decoder, name).tolist() for name in names}
    for n, length in enumerate(LENGTHS.tolist()):
        s, covered = start[n : n + 1], np.zeros(T_ENC)
        for t in range(T_DEC):
            s = decoder.cell(inputs[n : n + 1, t], s)  # read before the attention
            scores = reference_variants.covered(
                s[0].tolist(), encoded[n].tolist(), covered.tolist(), **params
            )
            a = np.array(reference.softmax(scores, [i < length for i in range(T_ENC)]))
            covered = covered + a
            c = a @ encoded[n].numpy()
            output = np.concatenate([s[0].detach().numpy(), c])
            for mine, theirs in ((decoded.weights, a), (decoded.contexts, c),
                                 (decoded.outputs, output)):  # fmt: skip
                np.testing.assert_allclose(
                    mine[n, t].detach().numpy(), theirs, rtol=0, atol=1e-11
                )


def test_the_state_carries_the_coverage():
    decoder, inputs, encoded, start = _case()
    memory, state = decoder.prepare(encoded, LENGTHS), decoder.start(start)
    coverage = coverage_before(decoder(inputs, memory, start).weights)
    for t in range(T_DEC - 1):
        _, state, _ = decoder.step(inputs[:, t], memory, state)
        torch.testing.assert_close(state.carried, coverage[:, t + 1], rtol=0, atol=1e-12)


def test_a_strong_negative_w_c_turns_attention_away_from_what_is_covered():
    decoder, inputs, encoded, start = _case()
    losses = []
    for strength in (0.0, 10.0):
        with torch.no_grad():
            decoder.w_c.copy_(-strength * decoder.v.sign())
        weights = decoder(inputs[:1], decoder.prepare(encoded[:1]), start[:1]).weights
        losses.append(coverage_loss(weights).sum().item())
    assert losses[1] < losses[0]


def test_the_coverage_of_another_source_is_refused():
    decoder, inputs, encoded, start = _case()
    _, state, _ = decoder.step(inputs[:, 0], decoder.prepare(encoded), decoder.start(start))
    with pytest.raises(ShapeError) as caught:
        decoder.step(inputs[:, 1], decoder.prepare(encoded[:, :5]), state)
    assert str(caught.value) == (
        "CoverageDecoder.step(): `carried` does not fit `memory` on axis T_enc\n"
        "  expected  carried (batch=3, T_enc=5)\n"
        "  got       carried (3, 7)\n"
        "  because   T_enc = 5 comes from `memory`"
    )


def test_its_options_are_checked():
    with pytest.raises(ConventionError, match="there is no normalizer 'argmax'"):
        CoverageDecoder(D_IN, D_S, D_H, D_ATTN, normalizer="argmax")
    with pytest.raises(ShapeError, match=r"CoverageDecoder\(\): `d_attn` is not a size"):
        CoverageDecoder(D_IN, D_S, D_H, 0)
