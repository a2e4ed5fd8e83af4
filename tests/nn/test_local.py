import numpy as np
import pytest
import torch

from regard.attention import reference, reference_variants
from regard.errors import ConventionError
from regard.nn import LocalLuongDecoder

BATCH, T_DEC, T_ENC, D_IN, D_S, D_H, D = 3, 5, 7, 2, 11, 13, 2
LENGTHS = torch.tensor([7, 2, 0])
KINDS = pytest.mark.parametrize("kind", ["m", "p"])


def _case(kind):
    torch.manual_seed(103)
    decoder = LocalLuongDecoder(D_IN, D_S, D_H, kind=kind, D=D, score="general").double()
    shapes = (BATCH, T_DEC, D_IN), (BATCH, T_ENC, D_H), (BATCH, D_S)
    return decoder, *(torch.randn(shape, dtype=torch.float64) for shape in shapes)


@KINDS
def test_it_attends_around_the_papers_position(kind):
    decoder, inputs, encoded, start = _case(kind)
    decoded = decoder(inputs, decoder.prepare(encoded, LENGTHS), start)
    states, _ = decoder.gru(inputs, start.unsqueeze(0))
    p = {name: x.tolist() for name, x in decoder.named_parameters()}
    for b, S in enumerate(LENGTHS.tolist()):
        for t in range(T_DEC):
            s, keys = states[b, t].tolist(), encoded[b].tolist()
            position = t if kind == "m" else reference_variants.predicted_position(
                s, S, W_p=p["W_p"], v_p=p["v_p"]
            )  # fmt: skip
            may = [i < S and abs(i - position) <= D for i in range(T_ENC)]
            scores = reference.general([s], keys, W=p["attention.W"])[0]
            a = np.array(reference.softmax(scores, may))
            if kind == "p":
                a = a * reference_variants.gaussian(position, T_ENC, D=D)
            c = a @ encoded[b].numpy()
            output = np.tanh(np.array(p["W_c"]) @ [*c, *s])
            for mine, theirs in ((decoded.weights, a), (decoded.contexts, c),
                                 (decoded.outputs, output)):  # fmt: skip
                np.testing.assert_allclose(
                    mine[b, t].detach().numpy(), theirs, rtol=0, atol=1e-12
                )


def test_local_m_runs_off_a_source_that_is_shorter_than_its_target():
    decoder, inputs, encoded, start = _case("m")
    weights = decoder(inputs, decoder.prepare(encoded, LENGTHS), start).weights
    # Source 1 has keys 0 and 1: step 3 still reaches key 1, step 4 reaches none.
    assert (weights[1, :4].sum(-1) > 0).all()
    assert not weights[1, 4].any()


def test_the_source_length_is_where_a_mask_ends():
    decoder, inputs, encoded, start = _case("p")
    holes = torch.tensor([[True, False, True, True, False, False, False]]).expand(3, -1)
    memory = decoder.prepare(encoded, key_mask=holes)
    hidden = decoder.gru(inputs, start.unsqueeze(0))[0]
    positions = decoder._positions(torch.zeros(3), hidden, memory)
    share = torch.sigmoid(torch.tanh(hidden @ decoder.W_p.T) @ decoder.v_p)
    torch.testing.assert_close(positions, 4 * share)


def test_the_state_counts_the_steps():
    decoder, inputs, encoded, start = _case("m")
    memory, state = decoder.prepare(encoded), decoder.start(start)
    for t in range(3):
        _, state, _ = decoder.step(inputs[:, t], memory, state)
        assert state.carried.tolist() == [t + 1] * BATCH


def test_bfloat16_still_counts_past_its_own_precision():
    decoder = LocalLuongDecoder(2, 3, 3, kind="m", D=1).bfloat16()
    memory = decoder.prepare(torch.randn(1, 601, 3).bfloat16())
    weights = decoder(torch.randn(1, 601, 2).bfloat16(), memory, torch.zeros(1, 3).bfloat16())[
        3
    ]
    on_diagonal = weights[0].diagonal()
    assert (on_diagonal > 0).all()
    assert ((weights[0] > 0).sum(-1)[1:-1] == 3).all()


def test_an_unknown_kind_is_refused():
    with pytest.raises(ConventionError) as caught:
        LocalLuongDecoder(D_IN, D_S, D_S, kind="local-p", D=D)
    assert str(caught.value) == (
        "LocalLuongDecoder(): `kind` has no such value\n"
        '  expected  kind="m", step t looks at key t, or kind="p", it predicts where\n'
        "  got       kind='local-p'"
    )
    with pytest.raises(ConventionError, match=r"LocalLuongDecoder\(\): `D` is no reach"):
        LocalLuongDecoder(D_IN, D_S, D_S, kind="m", D=0)
