import math

import numpy as np
import pytest
import torch

from regard.kernels.gru_loop import LoopInputs, bahdanau_loop, gru_update

BATCH, T_DEC, T_ENC, D_S, D_H, D_ATTN = 3, 2, 5, 7, 11, 13


def _inputs(dtype=torch.float64, T_dec=T_DEC, small=False, grad=True):
    torch.manual_seed(13)
    d_s, d_h, d_attn = (2, 3, 5) if small else (D_S, D_H, D_ATTN)
    shapes = LoopInputs(
        key=(BATCH, T_ENC, d_attn),
        value=(BATCH, T_ENC, d_h),
        gates=(BATCH, T_dec, 3 * d_s),
        state=(BATCH, d_s),
        W_a=(d_attn, d_s),
        v_a=(d_attn,),
        W_hh=(3 * d_s, d_s),
        b_hh=(3 * d_s,),
        W_c=(3 * d_s, d_h),
    )
    return LoopInputs(*(torch.randn(s, dtype=dtype).requires_grad_(grad) for s in shapes))


def _mask(kind):
    if kind == "free":
        return None
    mask = torch.arange(T_ENC) < torch.tensor([[5], [2], [1]])
    if kind == "a dead row":
        mask[1] = False
    return mask


def _sigmoid(x):
    return 1 / (1 + math.exp(-x))


def _by_hand(given, mask):
    """The equations, one number at a time."""
    key, value, gates, state, W_a, v_a, W_hh, b_hh, W_c = (x.detach().numpy() for x in given)
    d_s = state.shape[1]
    states, contexts, weights = [], [], []
    for b in range(BATCH):
        s = state[b]
        may = [True] * T_ENC if mask is None else mask[b].tolist()
        for t in range(gates.shape[1]):
            query = W_a @ s  # from the state before the step
            e = [float(v_a @ np.tanh(query + key[b, i])) for i in range(T_ENC)]
            total = sum(math.exp(x) for x, m in zip(e, may, strict=True) if m)
            a = [math.exp(x) / total if m else 0.0 for x, m in zip(e, may, strict=True)]
            c = sum((a[i] * value[b, i] for i in range(T_ENC)), np.zeros(value.shape[2]))
            from_input, from_state = gates[b, t] + W_c @ c, W_hh @ s + b_hh
            after = np.empty(d_s)
            for j in range(d_s):
                r = _sigmoid(from_input[j] + from_state[j])
                z = _sigmoid(from_input[d_s + j] + from_state[d_s + j])
                n = math.tanh(from_input[2 * d_s + j] + r * from_state[2 * d_s + j])
                after[j] = (1 - z) * n + z * s[j]
            s = after
            states.append(s)
            contexts.append(c)
            weights.append(a)
    T_dec = gates.shape[1]
    return [np.array(each).reshape(BATCH, T_dec, -1) for each in (states, contexts, weights)]


@pytest.mark.parametrize("grad", [True, False], ids=["one node", "recorded"])
@pytest.mark.parametrize("kind", ["free", "padded", "a dead row"])
def test_the_loop_computes_the_equations(kind, grad):
    given = _inputs(T_dec=3, grad=grad)
    got = bahdanau_loop(given, _mask(kind))
    assert (got.states.grad_fn is not None) is grad
    for mine, expected in zip(got, _by_hand(given, _mask(kind)), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["free", "padded", "a dead row"])
def test_every_gradient_agrees_with_finite_differences(kind):
    given = tuple(_inputs(small=True))
    assert torch.autograd.gradcheck(
        lambda *each: tuple(bahdanau_loop(LoopInputs(*each), _mask(kind))),
        given,
        fast_mode=kind != "a dead row",  # every number once; the others by random directions
    )


def test_gradients_agree_where_keys_are_too_far_apart_to_be_factored():
    given = _inputs(small=True)
    far = given.key.detach().clone()
    far[0, 0] += 2000.0
    given = tuple(given._replace(key=far.requires_grad_()))
    assert torch.autograd.gradcheck(
        lambda *each: tuple(bahdanau_loop(LoopInputs(*each), None)), given, fast_mode=True
    )


def test_second_derivatives_agree_with_finite_differences():
    given = tuple(_inputs(small=True))
    assert torch.autograd.gradgradcheck(
        lambda *each: tuple(bahdanau_loop(LoopInputs(*each), _mask("a dead row"))),
        given,
        fast_mode=True,
    )


def test_a_second_derivative_by_one_input_needs_no_gradient_of_the_others():
    given = _inputs(grad=False)
    state = given.state.requires_grad_()
    first = torch.autograd.grad(
        bahdanau_loop(given, None).states.square().sum(), state, create_graph=True
    )[0]
    assert (torch.autograd.grad(first.sum(), state)[0] != 0).any()


@pytest.mark.parametrize("used", ["states", "contexts", "weights"])
def test_each_output_alone_carries_the_recorded_loops_gradient(used):
    given = _inputs()
    upstream = None
    found = []
    for path in ("one node", "recorded"):
        outputs = bahdanau_loop(given, _mask("padded"))
        if path == "recorded":
            outputs = _recorded_by_torch(given, _mask("padded"))
        out = getattr(outputs, used)
        upstream = torch.randn_like(out) if upstream is None else upstream
        found.append(torch.autograd.grad(out, given, upstream, materialize_grads=True))
    for name, mine, theirs in zip(LoopInputs._fields, *found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12, msg=f"gradient of {name}")


def _recorded_by_torch(given, mask):
    """The loop as a tutorial would write it, differentiated by autograd."""
    key, value, gates, state, W_a, v_a, W_hh, b_hh, W_c = given
    rows = []
    for t in range(gates.shape[1]):
        scores = torch.tanh((state @ W_a.T)[:, None] + key) @ v_a
        weights = torch.softmax(scores.masked_fill(~mask, -math.inf), -1)
        context = torch.einsum("bi,bid->bd", weights, value)
        state = gru_update(gates[:, t] + context @ W_c.T, state @ W_hh.T + b_hh, state)
        rows.append((state, context, weights))
    return type(bahdanau_loop(given, mask))(
        *(torch.stack(x, 1) for x in zip(*rows, strict=True))
    )


def test_an_example_without_keys_has_no_weight_no_context_and_no_gradient_of_its_keys():
    given = _inputs()
    outputs = bahdanau_loop(given, _mask("a dead row"))
    sum(each.square().sum() for each in outputs).backward()
    assert (outputs.weights[1] == 0).all()
    assert (outputs.contexts[1] == 0).all()
    assert (given.key.grad[1] == 0).all()
    assert (given.value.grad[1] == 0).all()
    assert (given.gates.grad[1] != 0).any()  # it still decodes
    assert all(each.grad.isfinite().all() for each in given)


def test_float32_stays_close_to_float64_over_many_steps():
    exact = _inputs(torch.float64, T_dec=31)
    single = LoopInputs(*(each.detach().float().requires_grad_() for each in exact))
    for given in (exact, single):
        outputs = bahdanau_loop(given, _mask("padded"))
        (outputs.states.sum() + outputs.contexts.square().sum()).backward()
    for name, mine, theirs in zip(LoopInputs._fields, single, exact, strict=True):
        scale = theirs.grad.abs().max()
        error = (mine.grad.double() - theirs.grad).abs().max() / scale
        assert error < 2e-5, (name, float(error))


def test_inputs_and_upstream_gradients_are_not_written_to():
    given = _inputs()
    before = [each.detach().clone() for each in given]
    outputs = bahdanau_loop(given, _mask("padded"))
    upstream = [torch.randn_like(each) for each in outputs]
    copies = [each.clone() for each in upstream]
    torch.autograd.backward(outputs, upstream)
    assert all(torch.equal(a, b) for a, b in zip(before, given, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(copies, upstream, strict=True))


@pytest.mark.parametrize("grad", [True, False])
def test_no_step_at_all_gives_empty_outputs(grad):
    given = _inputs(T_dec=0, grad=grad)
    outputs = bahdanau_loop(given, None)
    assert [each.shape for each in outputs] == [
        (BATCH, 0, D_S),
        (BATCH, 0, D_H),
        (BATCH, 0, T_ENC),
    ]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_run_the_recorded_loop_and_stay_finite(dtype):
    given = _inputs(dtype)
    outputs = bahdanau_loop(given, _mask("a dead row"))
    sum(each.sum() for each in outputs).backward()
    assert outputs.states.dtype == dtype
    assert all(each.isfinite().all() for each in outputs)
    assert all(each.grad.isfinite().all() for each in given)


def test_the_gru_update_is_pytorchs():
    torch.manual_seed(17)
    cell = torch.nn.GRUCell(3, 5)
    x, state = torch.randn(2, 3), torch.randn(2, 5)
    from_input = x @ cell.weight_ih.T + cell.bias_ih
    from_state = state @ cell.weight_hh.T + cell.bias_hh
    torch.testing.assert_close(gru_update(from_input, from_state, state), cell(x, state))
