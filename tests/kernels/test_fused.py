"""The formula that a compiler fuses: its guards inside a graph, and that it compiles at all."""

import shutil

import numpy as np
import pytest
import torch
from kernel_regimes import REGIMES, arrays_of, in_float64

from regard.kernels import choose, fused
from regard.kernels.additive import additive_scores

B, T_DEC, T_ENC, D_ATTN = 2, 13, 31, 47


def _given(grad=False):
    torch.manual_seed(17)
    shapes = (B, T_DEC, D_ATTN), (B, T_ENC, D_ATTN), (D_ATTN,)
    return [torch.randn(shape).requires_grad_(grad) for shape in shapes]


def _formula(query, key, v):
    return torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ v


@pytest.fixture(scope="module")
def traced():
    """The formula as a graph, its operations run one by one."""
    return torch.compile(fused.additive_scores, fullgraph=True, backend="eager")


@pytest.mark.parametrize("regime", REGIMES)
def test_scores_and_gradients_are_right_in_every_regime(regime, rng, traced):
    *given, grad = (torch.from_numpy(each) for each in arrays_of(regime, rng))
    expected, gradients = in_float64(*given, grad)
    inputs = [each.requires_grad_() for each in given]
    scores = traced(*inputs)
    total = float(given[2].detach().double().abs().sum())
    # Where a few weights outweigh the rest, a tangent's own error shows.
    each = 2e-7 if regime == "weights of every size" else 1e-7
    error = np.abs(scores.detach().numpy() - expected).max()
    assert error <= each * total + 1e-40
    found = torch.autograd.grad(scores, inputs, grad)
    for name, mine, right in zip("qkv", found, gradients, strict=True):
        if regime == "normal 1e30" and name != "v":
            assert float(mine.abs().max()) < 1e-6 * total
            continue
        assert np.isfinite(mine.numpy()).all()
        # Autograd multiplies by weights first, and subnormal ones leave few digits.
        bound = 1e-2 if regime == "denormal weights" else 1.5e-6
        assert np.abs(mine.numpy() - right).max() <= bound * np.abs(right).max() + 1e-43


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)], ids=str)
def test_leading_axes_do_not_matter(shape, traced):
    torch.manual_seed(19)
    query, key = torch.randn(*shape, T_DEC, D_ATTN), torch.randn(*shape, T_ENC, D_ATTN)
    v = torch.randn(D_ATTN)
    expected = _formula(query.double(), key.double(), v.double())
    found = traced(query, key, v)
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=5e-6)


@pytest.fixture
def graphs(monkeypatch):
    """How often a graph took the fused formula."""
    taken = []
    real = fused.suits_a_graph

    def suits(query, key):
        found = real(query, key)
        taken.append(found)
        return found

    monkeypatch.setattr(fused, "suits_a_graph", suits)
    torch._dynamo.reset()
    return taken


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_code_under_torch_compile_takes_it_in_one_piece(graphs, backend):
    given = _given(grad=True)
    compiled = torch.compile(additive_scores, fullgraph=True, backend=backend)
    scores, expected = compiled(*given), _formula(*given)
    torch.testing.assert_close(scores, expected, rtol=0, atol=5e-6)
    got = torch.autograd.grad(scores.square().sum(), given)
    wanted = torch.autograd.grad(expected.square().sum(), given)
    for mine, theirs in zip(got, wanted, strict=True):
        atol = 3e-6 * float(theirs.abs().max())
        torch.testing.assert_close(mine, theirs, rtol=0, atol=atol)
    assert graphs == [True]


def test_one_graph_is_right_for_narrow_and_for_wide_keys():
    torch._dynamo.reset()
    query, key, v = _given()
    compiled = torch.compile(additive_scores, fullgraph=True, backend="eager")
    for scale in (1, 1e3, 1e-4):
        expected = _formula(*(x.double() for x in (query * scale, key * scale, v)))
        found = compiled(query * scale, key * scale, v)
        assert float((found - expected).abs().max()) < 2e-7 * float(v.abs().sum())


@pytest.mark.parametrize("case", ["a step", "float64", "a transform"])
def test_where_it_does_not_pay_or_cannot_be_the_plain_formula_is_compiled(graphs, case):
    query, key, v = _given()
    if case == "a step":
        query = query[:, :1]
    if case == "float64":
        query, key, v = query.double(), key.double(), v.double()

    def total(query):
        scores = additive_scores(query, key, v)
        return scores.square().sum()

    function = torch.func.grad(total) if case == "a transform" else total
    found = torch.compile(function, fullgraph=True, backend="eager")(query)
    torch.testing.assert_close(found, function(query), rtol=1e-5, atol=1e-5)
    assert graphs[0] is False


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++"), reason="PyTorch's compiler needs g++ on a CPU")
# Its own use of what it deprecates, and its own look at .grad.
@pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore:The .grad:UserWarning"
)
def test_asked_for_by_name_it_is_compiled_for_the_processor(monkeypatch):
    monkeypatch.setenv(choose.VARIABLE, "compile")
    torch._dynamo.reset()
    fused.compiled.cache_clear()
    given = _given(grad=True)
    made = [each * 1 for each in given]  # as projections are: no leaves
    scores, expected = additive_scores(*made), _formula(*given)
    torch.testing.assert_close(scores, expected, rtol=0, atol=5e-6)
    got = torch.autograd.grad(scores.square().sum(), given)
    wanted = torch.autograd.grad(expected.square().sum(), given)
    for mine, theirs in zip(got, wanted, strict=True):
        atol = 3e-6 * float(theirs.abs().max())
        torch.testing.assert_close(mine, theirs, rtol=0, atol=atol)
