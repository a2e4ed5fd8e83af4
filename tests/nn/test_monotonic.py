import numpy as np
import pytest
import torch

from regard.attention import reference_variants
from regard.errors import ConventionError, ShapeError
from regard.nn import MonotonicDecoder

BATCH, T_DEC, T_ENC, D_IN, D_S, D_H, D_ATTN = 3, 5, 7, 2, 11, 13, 17
LENGTHS = torch.tensor([7, 3, 0])


def _case(**options):
    torch.manual_seed(131)
    decoder = MonotonicDecoder(D_IN, D_S, D_H, D_ATTN, **options).double()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter)
    shapes = (BATCH, T_DEC, D_IN), (BATCH, T_ENC, D_H), (BATCH, D_S)
    return decoder, *(torch.randn(shape, dtype=torch.float64) for shape in shapes)


@pytest.mark.parametrize("hard", [False, True], ids=["expected", "hard"])
def test_each_step_walks_on_from_where_the_last_one_stopped(hard):
    decoder, inputs, encoded, start = _case(noise=0.0, hard=hard)
    decoded = decoder(inputs, decoder.prepare(encoded, LENGTHS), start)
    names = ("W", "V", "b", "v", "g", "r")
    params = {name: getattr(decoder, name).tolist() for name in names}
    for n, length in enumerate(LENGTHS.tolist()):
        s, H, key = start[n : n + 1], encoded[n].numpy(), 0
        a = np.eye(T_ENC)[0]
        for t in range(T_DEC):
            e = np.array(
                reference_variants.monotonic_energy(s[0].tolist(), H.tolist(), **params)
            )
            real = np.arange(T_ENC) < length
            if hard:
                key = reference_variants.hard_alignment(np.where(real, e, -1).tolist(), key)
                a = np.zeros(T_ENC) if key is None else np.eye(T_ENC)[key]
            else:
                p = real / (1 + np.exp(-e))
                a = np.array(reference_variants.expected_alignment(p.tolist(), a.tolist()))
            c = torch.from_numpy(a @ H).unsqueeze(0)
            s = decoder.cell(torch.cat([inputs[n : n + 1, t], c], -1), s)
            output = torch.cat([s, c], -1)[0].detach()
            for mine, theirs in ((decoded.weights, a), (decoded.contexts, a @ H),
                                 (decoded.outputs, output)):  # fmt: skip
                np.testing.assert_allclose(
                    mine[n, t].detach().numpy(), theirs, rtol=0, atol=1e-11
                )


def test_it_trains_with_the_expectation_and_decodes_one_key_at_a_time():
    decoder, inputs, encoded, start = _case(noise=0.0)
    memory = decoder.prepare(encoded, LENGTHS)
    soft = decoder(inputs, memory, start).weights
    assert ((soft > 0) & (soft < 1)).any()
    taken = decoder.eval()(inputs, memory, start).weights
    assert set(taken.unique().tolist()) == {0.0, 1.0}
    assert (taken.sum(-1) <= 1).all()


def test_hard_weights_move_forward_only():
    decoder, inputs, encoded, start = _case(hard=True)
    weights = decoder(inputs, decoder.prepare(encoded), start).weights
    keys = [row.argmax(-1)[row.sum(-1) > 0] for row in weights]
    assert any(len(each) > 1 for each in keys)
    assert all((each.diff() >= 0).all() for each in keys)


def test_noise_is_added_in_training_mode_alone():
    decoder, inputs, encoded, start = _case(noise=1.0, hard=False)
    memory = decoder.prepare(encoded)

    def weights():
        return decoder(inputs, memory, start).weights

    torch.manual_seed(1)
    one = weights()
    assert not torch.equal(one, weights())
    torch.manual_seed(1)
    assert torch.equal(one, weights())
    decoder.eval()
    assert torch.equal(weights(), weights())


def test_the_noise_has_the_deviation_it_was_given():
    decoder = MonotonicDecoder(2, 3, 5, 7, noise=2.0, method="recursive").double()
    memory = decoder.prepare(torch.zeros(10007, 1, 5, dtype=torch.float64))
    energies = torch.zeros(10007, 1, dtype=torch.float64)
    torch.manual_seed(3)
    # With one key the weight is the sigmoid of the noise itself.
    noise = torch.logit(decoder._align(energies, memory, None))
    assert abs(noise.mean().item()) < 0.06
    assert 1.95 < noise.std().item() < 2.05


def test_scale_and_offset_start_where_the_documentation_says():
    decoder = MonotonicDecoder(D_IN, D_S, D_H, D_ATTN, offset=-4.0)
    assert decoder.g.item() == pytest.approx(17**-0.5)
    assert decoder.r.item() == -4.0
    low, high = (MonotonicDecoder(2, 3, 5, 7, offset=o, noise=0.0) for o in (-9.0, 9.0))
    for decoder, expected in ((low, 0.0), (high, 1.0)):
        memory = decoder.prepare(torch.zeros(1, 11, 5))
        weights = decoder(torch.zeros(1, 1, 2), memory, torch.zeros(1, 3)).weights
        assert weights[0, 0, 0].item() == pytest.approx(expected, abs=0.01)


def test_options_that_mean_nothing_are_refused():
    with pytest.raises(ConventionError) as caught:
        MonotonicDecoder(D_IN, D_S, D_H, D_ATTN, noise=-1.0)
    assert str(caught.value) == (
        "MonotonicDecoder(): `noise` is no standard deviation\n"
        "  expected  noise of at least 0\n"
        "  got       noise=-1.0"
    )
    with pytest.raises(ShapeError, match=r"MonotonicDecoder\(\): `d_in` is not a size"):
        MonotonicDecoder(0, D_S, D_H, D_ATTN)
    with pytest.raises(ConventionError, match=r"MonotonicDecoder\(\): `method` has no such"):
        MonotonicDecoder(D_IN, D_S, D_H, D_ATTN, method="parallel")
