import pytest
import torch

from regard.kernels import native, torch_op

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.reason()))


def _given(grad=True):
    torch.manual_seed(5)
    shapes = ((2, 3, 5, 7), (2, 3, 11, 7), (7,))
    return [torch.randn(shape).requires_grad_(grad) for shape in shapes]


def _mask():
    return torch.arange(11) < torch.tensor([[11, 5, 2], [1, 0, 7]]).unsqueeze(-1)


def _formula(query, key, v, mask=None):
    scores = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ v
    return scores if mask is None else scores.masked_fill(~mask.unsqueeze(-2), 0.0)


@pytest.mark.parametrize("mask", [None, _mask()], ids=["free", "masked"])
def test_the_operators_keep_pytorchs_rules(mask):
    given = (*_given(), mask)
    torch.library.opcheck(torch.ops.regard.additive_scores.default, given)
    grad = torch.randn(2, 3, 5, 11)
    given = (*_given(grad=False), grad, mask)
    torch.library.opcheck(torch.ops.regard.additive_scores_backward.default, given)


@pytest.mark.parametrize("mask", [None, _mask()], ids=["free", "masked"])
def test_scores_and_gradients_are_the_formulas_in_float64(mask):
    single = _given()
    double = [each.detach().double().requires_grad_() for each in single]
    upstream = torch.randn(2, 3, 5, 11)
    scores, expected = torch_op.additive_scores(*single, mask), _formula(*double, mask)
    bound = 1.5e-7 * float(single[2].detach().abs().sum())
    torch.testing.assert_close(scores.double(), expected, rtol=0, atol=bound)
    got = torch.autograd.grad(scores, single, upstream)
    wanted = torch.autograd.grad(expected, double, upstream.double())
    for mine, theirs in zip(got, wanted, strict=True):
        atol = 1e-6 * float(theirs.abs().max())
        torch.testing.assert_close(mine.double(), theirs, rtol=0, atol=atol)


def test_second_derivatives_are_the_formulas():
    def hessian_product(score, given):
        first = torch.autograd.grad(score(*given).square().sum(), given, create_graph=True)
        return torch.autograd.grad(sum(each.square().sum() for each in first), given)

    single = _given()
    double = [each.detach().double().requires_grad_() for each in single]
    mask = _mask()
    got = hessian_product(lambda *each: torch_op.additive_scores(*each, mask), single)
    wanted = hessian_product(lambda *each: _formula(*each, mask), double)
    for mine, theirs in zip(got, wanted, strict=True):
        atol = 1e-5 * float(theirs.abs().max())
        torch.testing.assert_close(mine.double(), theirs, rtol=0, atol=atol)


def test_strides_do_not_matter():
    query, key, v = _given(grad=False)
    turned = [each.transpose(-1, -2).contiguous().transpose(-1, -2) for each in (query, key)]
    spread = v.repeat_interleave(2)[::2]
    assert not any(each.is_contiguous() for each in (*turned, spread))
    expected = torch_op.additive_scores(query, key, v)
    assert torch.equal(torch_op.additive_scores(*turned, spread), expected)


def test_a_gradient_that_is_expanded_is_read_rightly():
    given = _given()
    scores = torch_op.additive_scores(*given)
    got = torch.autograd.grad(scores.sum(), given)
    wanted = torch.autograd.grad(_formula(*given).sum(), given)
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


def test_float32_stays_float32_under_autocast():
    given = _given(grad=False)
    expected = torch_op.additive_scores(*given)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(torch_op.additive_scores(*given), expected)


def test_it_compiles_in_one_piece():
    given = _given(grad=False)
    compiled = torch.compile(torch_op.additive_scores, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(*given), torch_op.additive_scores(*given))
