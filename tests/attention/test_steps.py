"""The calls as the lesson writes them, on lists, NumPy and torch."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from attention_cases import D_ATTN, D_H, D_S, T_ENC

import regard as rg

STATES = [[1.0, 0.0, 0.2], [0.5, 0.5, 0.1], [0.1, 0.9, 0.3]]
NEAR_FIRST, NEAR_LAST = [0.9, 0.1, 0.2], [0.2, 0.8, 0.4]
W_A = [[0.6, 0.3, 0.1], [0.1, 0.5, 0.4]]
U_A = [[0.5, 0.2, 0.3], [0.2, 0.6, 0.2]]
V_A = [0.8, 0.6]


def _forms():
    torch = pytest.importorskip("torch")
    yield lambda value: value
    yield np.array
    yield lambda value: torch.tensor(value, dtype=torch.float64)


def test_the_worked_example_gives_the_printed_dot_weights_in_every_form():
    for form in _forms():
        context, weights = rg.dot_attention(form(NEAR_FIRST), form(STATES))
        assert [f"{float(w):.3f}" for w in weights] == ["0.464", "0.305", "0.231"]
        # By hand: exp(0.94), exp(0.52), exp(0.24) over their sum.
        by_hand = np.exp([0.94, 0.52, 0.24]) / np.exp([0.94, 0.52, 0.24]).sum()
        np.testing.assert_allclose([float(c) for c in context], by_hand @ np.array(STATES))


def test_the_articles_additive_matrices_give_these_weights_in_every_form():
    for form in _forms():
        arguments = [form(value) for value in (NEAR_FIRST, STATES, W_A, U_A, V_A)]
        _, weights = rg.additive_attention(*arguments)
        assert [f"{float(w):.3f}" for w in weights] == ["0.322", "0.330", "0.348"]


def test_moving_the_state_to_the_last_key_moves_the_weight_there():
    for form in _forms():
        _, weights = rg.dot_attention(form(NEAR_LAST), form(STATES))
        assert max(range(3), key=lambda i: float(weights[i])) == 2


def test_the_lessons_snippet_runs_as_pasted_with_only_the_import_line_changed():
    snippet = textwrap.dedent(
        """
        import numpy as np
        from regard import dot_attention
        H = np.array([
            [1.0, 0.0, 0.2],
            [0.5, 0.5, 0.1],
            [0.1, 0.9, 0.3],
        ])

        s_close_to_cat = np.array([0.9, 0.1, 0.2])
        ctx, w = dot_attention(s_close_to_cat, H)
        print("weights:", w.round(3))
        """
    )
    ran = subprocess.run(
        [sys.executable, "-c", snippet], capture_output=True, text=True, check=False
    )
    assert ran.stdout == "weights: [0.464 0.305 0.231]\n", ran.stderr


def _case(rng, batch=()):
    return {
        "state": rng.normal(size=(*batch, D_S)),
        "states": rng.normal(size=(*batch, T_ENC, D_H)),
        "W": rng.normal(size=(D_S, D_H)),
        "W_a": rng.normal(size=(D_ATTN, D_S)),
        "U_a": rng.normal(size=(D_ATTN, D_H)),
        "W_c": rng.normal(size=(D_ATTN, D_S + D_H)),
        "v": rng.normal(size=D_ATTN),
    }


def _calls(f, c, **mask):
    return {
        "additive": rg.additive_attention(
            f(c["state"]), f(c["states"]), f(c["W_a"]), f(c["U_a"]), f(c["v"]), **mask
        ),
        "general": rg.general_attention(f(c["state"]), f(c["states"]), f(c["W"]), **mask),
        "concat": rg.concat_attention(
            f(c["state"]), f(c["states"]), f(c["W_c"]), f(c["v"]), **mask
        ),
        "dot": rg.dot_attention(f(c["state"] @ c["W"]), f(c["states"]), **mask),
    }


def test_lists_and_arrays_agree(xp, rng):
    c = _case(rng)
    mask = rng.random(T_ENC) < 0.5
    lists = _calls(lambda a: a.tolist(), c, mask=mask.tolist())
    arrays = _calls(xp.array, c, mask=xp.array(mask))
    for score, (context, weights) in arrays.items():
        assert xp.numpy(context).shape == (D_H,)
        assert xp.numpy(weights).shape == (T_ENC,)
        np.testing.assert_allclose(xp.numpy(context), lists[score].context, atol=1e-12)
        np.testing.assert_allclose(xp.numpy(weights), lists[score].weights, atol=1e-12)
        assert not xp.numpy(weights)[~mask].any()


def test_leading_batch_axes_are_free(xp, rng):
    c = _case(rng, batch=(2, 3))
    for score, (context, weights) in _calls(xp.array, c).items():
        assert xp.numpy(context).shape == (2, 3, D_H)
        one = {**c, "state": c["state"][1, 2], "states": c["states"][1, 2]}
        alone = _calls(xp.array, one)[score]
        np.testing.assert_allclose(xp.numpy(weights)[1, 2], xp.numpy(alone.weights), atol=1e-12)


def test_a_sequence_of_states_is_not_taken_for_a_step():
    with pytest.raises(rg.ShapeError) as caught:
        rg.dot_attention(np.zeros((3, 5)), np.zeros((13, 5)))
    assert str(caught.value) == (
        "dot_attention(): `encoder_states` has 2 axes, not 3\n"
        "  expected  encoder_states (3, T_enc, d_h=5)\n"
        "  got       encoder_states (13, 5)\n"
        "  because   `decoder_state` (3, 5) has 1 axis before its d_h"
    )


def test_sizes_that_differ_are_named_for_dot_products():
    for form in _forms():
        with pytest.raises(rg.ShapeError) as caught:
            rg.dot_attention(form([0.0] * 5), form([[0.0] * 7] * 13))
        assert str(caught.value) == (
            "dot_attention(): `encoder_states` does not fit `decoder_state` on axis d_h\n"
            "  expected  encoder_states (T_enc=13, d_h=5)\n"
            "  got       encoder_states (13, 7)\n"
            "  because   d_h = 5 comes from `decoder_state`"
        )


def test_transposed_parameters_are_named_in_every_form():
    for form in _forms():
        with pytest.raises(rg.ShapeError) as caught:
            rg.additive_attention(
                form(NEAR_FIRST), form(STATES), form(W_A), form([[0.5, 0.2]] * 3), form(V_A)
            )
        assert str(caught.value) == (
            "additive_attention(): `U_a` does not fit `W_a` on axis d_attn\n"
            "  expected  U_a (d_attn=2, d_h=3)\n"
            "  got       U_a (3, 2)\n"
            "  because   d_attn = 2 comes from `W_a`\n"
            "  help      the transpose of `U_a` would fit"
        )


def test_ragged_lists_are_named():
    with pytest.raises(rg.ShapeError, match="`encoder_states` is ragged"):
        rg.dot_attention([1.0, 2.0], [[1.0, 2.0], [1.0]])


def test_a_batch_of_nested_lists_is_refused():
    with pytest.raises(rg.ShapeError, match="one example at a time"):
        rg.dot_attention([[1.0, 2.0]], [[[1.0, 2.0]]])
