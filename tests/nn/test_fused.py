import pytest
import torch
from torch.nn import functional

from regard.nn.fused import safe_attention


def _textbook(query, key, value, *, attn_mask, dropout_p, is_causal, scale):
    """Attention as PyTorch's releases before 2.5 had it: a row of -inf is NaN."""
    assert dropout_p == 0
    assert not is_causal
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, -torch.inf)
    else:
        scores = scores + attn_mask
    return scores.softmax(-1) @ value


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("kernel", ["textbook", "own"])
def test_no_kernel_makes_nan_of_a_row_without_a_key(monkeypatch, kernel, biased):
    torch.manual_seed(149)
    shapes = (2, 3, 5, 7), (2, 3, 11, 7), (2, 3, 11, 13)
    given = [torch.randn(s, dtype=torch.float64, requires_grad=True) for s in shapes]
    may = torch.rand(2, 1, 5, 11) < 0.6
    may[1, 0, 2] = False
    bias = torch.randn(1, 3, 5, 11, dtype=torch.float64) if biased else None
    scores = given[0] @ given[1].mT * 7**-0.5 + (0.0 if bias is None else bias)
    weights = scores.masked_fill(~may, -torch.inf).softmax(-1).nan_to_num(0.0)
    if kernel == "textbook":
        monkeypatch.setattr(functional, "scaled_dot_product_attention", _textbook)
    context = safe_attention(*given, may, bias)
    torch.testing.assert_close(context, weights @ given[2], rtol=0, atol=1e-12)
    context.square().sum().backward()
    assert all(x.grad.isfinite().all() for x in given)
    assert (given[0].grad[1, :, 2] == 0).all()
