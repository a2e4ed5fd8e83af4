"""Which kernel the functions of regard.attention get, and that its numbers are right."""

import subprocess
import sys

import numpy as np
import pytest

import regard as rg
from regard.attention import faster
from regard.kernels import arrays, blocks, choose, native

B, T_DEC, T_ENC, D_S, D_H, D_ATTN = 2, 29, 61, 5, 7, 47  # 166,286 pairs x features


def _given(xp, dtype=np.float32, T_dec=T_DEC, seed=5):
    rng = np.random.default_rng(seed)
    shapes = [(B, T_dec, D_S), (B, T_ENC, D_H), (D_ATTN, D_S), (D_ATTN, D_H), (D_ATTN,)]
    drawn = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
    query, key, W_a, U_a, v_a = (xp.array(each) for each in drawn)
    return drawn, (query, key), {"W_a": W_a, "U_a": U_a, "v_a": v_a}


def _expected(drawn):
    query, key, W_a, U_a, v_a = (each.astype(np.float64) for each in drawn)
    pairs = (query @ W_a.T)[:, :, None] + (key @ U_a.T)[:, None]
    return np.tanh(pairs) @ v_a


@pytest.fixture
def ran(monkeypatch):
    """The kernels that ran, in order."""
    found = []
    for name, module in (("blocks", blocks), ("native", native)):

        def spy(*given, name=name, real=module.additive_scores):
            found.append(name)
            return real(*given)

        monkeypatch.setattr(module, "additive_scores", spy)
    return found


@pytest.mark.parametrize("wish", ["", "off", "blocks", "native", "compile"])
def test_every_library_and_wish_gives_the_formulas_scores(monkeypatch, xp, wish):
    if wish == "native" and not native.available():
        pytest.skip(str(native.reason()))
    if wish == "compile" and xp.name == "torch":
        pytest.skip("compiled in test_fused.py")
    monkeypatch.setenv(choose.VARIABLE, wish)
    drawn, given, params = _given(xp)
    scores = xp.numpy(rg.scores.additive(*given, **params))
    assert scores.dtype == np.float32
    # The projections round too, before any kernel.
    np.testing.assert_allclose(scores, _expected(drawn), rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("wish", "expected"),
    [("", "native"), ("off", None), ("blocks", "blocks"), ("native", "native")],
)
def test_the_variable_chooses_for_numpy(monkeypatch, ran, wish, expected):
    if expected == "native" and not native.available():
        pytest.skip(str(native.reason()))
    monkeypatch.setenv(choose.VARIABLE, wish)
    _, given, params = _given(_numpy)
    rg.scores.additive(*given, **params)
    assert ran == [expected] * (expected is not None)


class _numpy:  # noqa: N801 - stands for the fixture
    array = staticmethod(np.asarray)


def test_concat_is_computed_by_the_same_kernels(monkeypatch, ran):
    monkeypatch.setenv(choose.VARIABLE, "blocks")
    drawn, given, params = _given(_numpy)
    W_c = np.concatenate([params["W_a"], params["U_a"]], axis=1)
    scores = rg.scores.concat(*given, W_c=W_c, v_c=params["v_a"])
    assert ran == ["blocks"]
    np.testing.assert_allclose(scores, _expected(drawn), rtol=0, atol=1e-5)


def test_without_a_native_library_blocks_run(monkeypatch, ran):
    monkeypatch.delenv(choose.VARIABLE, raising=False)
    nothing = native._Loaded(None, (), "the native library was not built")
    monkeypatch.setattr(native, "_load", lambda: nothing)
    _, given, params = _given(_numpy)
    rg.scores.additive(*given, **params)
    assert ran == ["blocks"]


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_types_keep_the_plain_formula_to_the_bit(ran, dtype):
    _, given, params = _given(_numpy, dtype)
    scores = rg.scores.additive(*given, **params)
    pairs = (given[0] @ params["W_a"].T)[:, :, None] + (given[1] @ params["U_a"].T)[:, None]
    assert np.array_equal(scores, np.tanh(pairs) @ params["v_a"])
    assert ran == []


def test_little_work_asks_no_kernel(monkeypatch):
    def refuse(*given):
        raise AssertionError(given)

    monkeypatch.setattr(arrays, "additive_scores", refuse)
    faster._kernel.cache_clear()
    try:
        _, given, params = _given(_numpy, T_dec=1)  # 5,734
        rg.scores.additive(*given, **params)
        _, given, params = _given(_numpy, T_dec=2)  # 11,468
        with pytest.raises(AssertionError):
            rg.scores.additive(*given, **params)
    finally:
        faster._kernel.cache_clear()


def test_a_class_made_of_numpys_keeps_the_plain_formula(ran):
    class Mine(np.ndarray):
        pass

    _, given, params = _given(_numpy)
    scores = rg.scores.additive(given[0].view(Mine), given[1], **params)
    assert ran == []
    assert isinstance(scores, Mine)


def test_gradients_flow_through_the_functions_too(monkeypatch):
    import torch

    found = {}
    for wish in ("off", "blocks", ""):
        monkeypatch.setenv(choose.VARIABLE, wish)
        drawn, _, _ = _given(_numpy)
        query, key, W_a, U_a, v_a = (torch.from_numpy(x).requires_grad_() for x in drawn)
        scores = rg.scores.additive(query, key, W_a=W_a, U_a=U_a, v_a=v_a)
        upstream = torch.linspace(-1, 1, scores.numel()).view_as(scores)
        found[wish] = torch.autograd.grad(scores, (query, key, W_a, U_a, v_a), upstream)
    for wish in ("blocks", ""):
        for mine, plain in zip(found[wish], found["off"], strict=True):
            atol = 3e-6 * float(plain.abs().max())
            torch.testing.assert_close(mine, plain, rtol=0, atol=atol)


def test_jax_may_trace_and_differentiate_it():
    jax = pytest.importorskip("jax")
    drawn, _, _ = _given(_numpy)
    given = [jax.numpy.asarray(each) for each in drawn]

    def total(query, key, W_a, U_a, v_a):
        return rg.scores.additive(query, key, W_a=W_a, U_a=U_a, v_a=v_a)

    np.testing.assert_allclose(jax.jit(total)(*given), _expected(drawn), rtol=0, atol=1e-5)
    slope = jax.grad(lambda *each: total(*each).sum(), argnums=4)(*given)
    query, key, W_a, U_a, _ = (each.astype(np.float64) for each in drawn)
    tangents = np.tanh((query @ W_a.T)[:, :, None] + (key @ U_a.T)[:, None])
    np.testing.assert_allclose(slope, tangents.sum((0, 1, 2)), rtol=0, atol=1e-2)


CHILD = """
import sys
import numpy as np
import regard as rg
ones = lambda *shape: np.ones(shape, "f")
params = {"W_a": ones(47, 5), "U_a": ones(47, 7), "v_a": ones(47)}
rg.scores.additive(ones(3, 5), ones(2, 7), **params)
print("regard.kernels" in sys.modules)
rg.scores.additive(ones(29, 5), ones(61, 7), **params)
print("regard.kernels.arrays" in sys.modules, "torch" in sys.modules)
"""


def test_small_calls_load_no_kernel_and_large_ones_no_torch():
    ran = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.split() == ["False", "True", "False"]
