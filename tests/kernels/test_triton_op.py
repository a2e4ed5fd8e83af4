"""The Triton kernels in Triton's interpreter, on the CPU: no GPU was ever used."""

import os

import numpy as np
import pytest
import torch
from kernel_regimes import BATCH, D_ATTN, REGIMES, T_DEC, T_ENC, arrays_of, in_float64

# Read when a kernel is made, Triton's own among them, which is when its module is imported.
os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton is not installed")
from regard.kernels import torch_op, triton_op

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the interpreter's NumPy


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks smaller than the sizes, so that there are several, the last one not full."""
    monkeypatch.setattr(triton_op, "_BLOCK", 16)


@pytest.mark.parametrize("regime", REGIMES)
def test_scores_and_gradients_are_right_in_every_regime(regime, rng):
    *given, grad = arrays_of(regime, rng)
    expected, gradients = in_float64(*given, grad)
    tensors = [torch.from_numpy(each) for each in given]
    scores = triton_op.additive_scores(*tensors).numpy()
    total = np.abs(given[2].astype(np.float64)).sum()
    # A feature's tangent is within 2e-7, and here few may count.
    each = 2e-7 if regime == "weights of every size" else 1e-7
    np.testing.assert_allclose(scores, expected, rtol=0, atol=each * total + 1e-43)
    found = triton_op.additive_gradients(*tensors, torch.from_numpy(grad))
    for name, mine, right in zip("qkv", found, gradients, strict=True):
        if regime == "normal 1e30" and name != "v":
            # Not a float32 number: the slopes are e^-1e30.
            assert float(mine.abs().max()) < 1e-6 * np.abs(given[2]).max()
            continue
        error = np.abs(mine.numpy() - right).max()
        assert error <= 1e-6 * np.abs(right).max() + 1e-43, (name, error)


@pytest.mark.parametrize("d_attn", [1, 33])
@pytest.mark.parametrize(("T_dec", "T_enc"), [(1, 1), (17, 3), (5, 33)])
def test_every_remainder_of_blocks_and_features_is_right(T_dec, T_enc, d_attn, rng):
    draw = [
        rng.standard_normal(s).astype("f") for s in ((3, T_dec, d_attn), (3, T_enc, d_attn))
    ]
    v, grad = rng.standard_normal(d_attn).astype("f"), rng.standard_normal((3, T_dec, T_enc))
    expected, gradients = in_float64(*draw, v, grad)
    tensors = [torch.from_numpy(each) for each in (*draw, v)]
    scores = triton_op.additive_scores(*tensors).numpy()
    np.testing.assert_allclose(scores, expected, rtol=0, atol=2e-7 * np.abs(v).sum())
    found = triton_op.additive_gradients(*tensors, torch.from_numpy(grad).float())
    for mine, right in zip(found, gradients, strict=True):
        np.testing.assert_allclose(mine, right, rtol=0, atol=1.5e-6 * np.abs(right).max())


def _mask():
    return torch.arange(T_ENC) < torch.tensor([[T_ENC], [5]])


@pytest.mark.parametrize("poison", [np.nan, np.inf, 1e30])
def test_forbidden_keys_count_for_nothing(poison, rng):
    query, key, v, grad = (torch.from_numpy(each) for each in arrays_of("normal 1", rng))
    mask = _mask()
    clean = triton_op.additive_scores(query, key, v, mask)
    slopes = triton_op.additive_gradients(query, key, v, grad, mask)
    key[~mask] = poison
    grad[~mask.unsqueeze(1).expand_as(grad)] = poison
    assert torch.equal(triton_op.additive_scores(query, key, v, mask), clean)
    assert (clean[1, :, 5:] == 0).all()
    for mine, before in zip(
        triton_op.additive_gradients(query, key, v, grad, mask), slopes, strict=True
    ):
        assert torch.equal(mine, before)
    assert (slopes[1][1, 5:] == 0).all()
    assert (slopes[1][1, :5] != 0).all()


@pytest.mark.parametrize("regime", ["normal 1", "normal 10", "one hot key", "huge weights"])
def test_the_context_is_that_of_the_scores_softmax(regime, rng):
    query, key, v, _ = arrays_of(regime, rng)
    value = rng.standard_normal((BATCH, T_ENC, 7)).astype("f")
    mask = _mask()
    mask[1] = False
    found = triton_op.additive_context(
        *(torch.from_numpy(each) for each in (query, key, v, value)), mask
    )
    scores, _ = in_float64(query, key, v, np.zeros((BATCH, T_DEC, T_ENC)))
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    expected = shares[0] / shares[0].sum(-1, keepdims=True) @ value[0]
    atol = 2e-5 if regime != "huge weights" else 1e-2  # scores of 1e37 differ by their rounding
    np.testing.assert_allclose(found[0].numpy(), expected, rtol=0, atol=atol)
    assert (found[1] == 0).all()


def test_half_the_keys_forbidden_give_the_context_of_the_others(rng):
    query, key, v, _ = (torch.from_numpy(each) for each in arrays_of("normal 1", rng))
    value = torch.randn(BATCH, T_ENC, D_ATTN)
    mask = (torch.arange(T_ENC) % 2 == 1).expand(BATCH, T_ENC)
    alone = triton_op.additive_context(query, key[:, 1::2], v, value[:, 1::2])
    key[:, ::2] = np.nan
    value[:, ::2] = np.nan
    found = triton_op.additive_context(query, key, v, value, mask)
    torch.testing.assert_close(found, alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["query", "key", "v"])
def test_nan_and_infinity_give_what_the_formula_gives(bad, where, rng):
    query, key, v, _ = arrays_of("normal 1", rng)
    arrays = {"query": query, "key": key, "v": v}
    arrays[where][..., 5] = np.where(rng.random(arrays[where][..., 5].shape) < 0.5, bad, 1.0)
    with np.errstate(invalid="ignore"):
        expected = np.tanh(query[:, :, None] + key[:, None]) @ v
    scores = triton_op.additive_scores(*(torch.from_numpy(each) for each in (query, key, v)))
    np.testing.assert_allclose(scores.numpy(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("sizes", [(0, 3, 5), (3, 0, 5), (3, 5, 0)])
def test_an_empty_axis_is_no_trouble(sizes):
    T_dec, T_enc, d_attn = sizes
    given = torch.ones(2, T_dec, d_attn), torch.ones(2, T_enc, d_attn), torch.ones(d_attn)
    scores = triton_op.additive_scores(*given)
    assert scores.tolist() == torch.zeros(2, T_dec, T_enc).tolist()
    for mine, like in zip(
        triton_op.additive_gradients(*given, torch.ones_like(scores)), given, strict=True
    ):
        assert mine.tolist() == torch.zeros_like(like).tolist()


def test_the_operators_have_them_for_cuda_devices():
    for name in ("additive_scores", "additive_scores_backward"):
        assert torch._C._dispatch_has_kernel_for_dispatch_key(f"regard::{name}", "CUDA")
    assert not triton_op.takes(torch.ones(3))
    assert torch_op.takes(torch.ones(3))
