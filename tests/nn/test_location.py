import numpy as np
import pytest
import torch

from regard.attention import reference, reference_variants
from regard.attention.smoothing import smoothed
from regard.errors import ConventionError, ShapeError
from regard.nn import LocationDecoder

BATCH, T_DEC, T_ENC, D_IN, D_S, D_H, D_ATTN, K, R = 3, 5, 7, 2, 11, 13, 17, 19, 3
LENGTHS = torch.tensor([7, 3, 0])


def _case(**options):
    torch.manual_seed(127)
    decoder = LocationDecoder(D_IN, D_S, D_H, D_ATTN, k=K, r=R, **options).double()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter)
    shapes = (BATCH, T_DEC, D_IN), (BATCH, T_ENC, D_H), (BATCH, D_S)
    return decoder, *(torch.randn(shape, dtype=torch.float64) for shape in shapes)


@pytest.mark.parametrize("beta", [1.0, 2.5])
@pytest.mark.parametrize("normalizer", ["softmax", "smoothed"])
def test_each_turn_reads_the_glimpse_before_and_asks_with_the_state_it_makes(normalizer, beta):
    decoder, inputs, encoded, start = _case(normalizer=normalizer, sharpening=beta)
    decoded = decoder(inputs, decoder.prepare(encoded, LENGTHS), start)
    params = {name: getattr(decoder, name).tolist() for name in ("W", "V", "U", "F", "b", "w")}
    for n, length in enumerate(LENGTHS.tolist()):
        s, a, H = start[n : n + 1], np.zeros(T_ENC), encoded[n].numpy()
        may = np.arange(T_ENC) < length
        for t in range(T_DEC):
            glimpse = torch.from_numpy(a @ H).unsqueeze(0)
            s = decoder.cell(torch.cat([inputs[n : n + 1, t], glimpse], -1), s)
            scores = reference_variants.location(
                s[0].tolist(), H.tolist(), a.tolist(), **params
            )
            sharp = [beta * e for e in scores]
            if normalizer == "softmax":
                a = np.array(reference.softmax(sharp, may.tolist()))
            else:
                a = smoothed(np.array(sharp), mask=may)
            output = np.concatenate([s[0].detach().numpy(), a @ H])
            for mine, theirs in ((decoded.weights, a), (decoded.contexts, a @ H),
                                 (decoded.outputs, output)):  # fmt: skip
                np.testing.assert_allclose(
                    mine[n, t].detach().numpy(), theirs, rtol=0, atol=1e-11
                )


def test_the_state_carries_the_weights():
    decoder, inputs, encoded, start = _case()
    stepped = decoder.step(inputs[:, 0], decoder.prepare(encoded), decoder.start(start))
    assert torch.equal(stepped.state.carried, stepped.weights)


def test_filters_can_move_the_attention_on_by_one_key():
    # One filter copies the weights one key to the right; nothing else matters.
    decoder = LocationDecoder(1, 1, 1, 1, k=1, r=3)
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.zero_()
        decoder.F[0, 2] = decoder.U[0, 0] = 1.0
        decoder.w[0] = 1000.0
        memory = decoder.prepare(torch.zeros(1, 7, 1))
        state = decoder.start(torch.zeros(1, 1))
        carried = torch.eye(7)[2:3]
        weights = decoder._turn(torch.zeros(1, 1), memory, state.hidden, carried).weights
    assert weights[0].argmax() == 3
    assert weights[0, 3] > 0.999


def test_the_weights_of_another_source_are_refused():
    decoder, inputs, encoded, start = _case()
    _, state, _ = decoder.step(inputs[:, 0], decoder.prepare(encoded), decoder.start(start))
    with pytest.raises(ShapeError, match="`carried` does not fit `memory` on axis T_enc"):
        decoder.step(inputs[:, 1], decoder.prepare(encoded[:, :5]), state)


def test_its_options_are_checked():
    with pytest.raises(ConventionError) as caught:
        LocationDecoder(D_IN, D_S, D_H, D_ATTN, k=K, r=R, sharpening=0)
    assert str(caught.value) == (
        "LocationDecoder(): `sharpening` turns scores around\n"
        "  expected  sharpening above 0; above 1 it narrows the weights\n"
        "  got       sharpening=0"
    )
    with pytest.raises(ConventionError, match="filters of width 2 have no middle"):
        LocationDecoder(D_IN, D_S, D_H, D_ATTN, k=K, r=2)
    with pytest.raises(ShapeError, match=r"LocationDecoder\(\): `k` is not a size"):
        LocationDecoder(D_IN, D_S, D_H, D_ATTN, k=0, r=R)
