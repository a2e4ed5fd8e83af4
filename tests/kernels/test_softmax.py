import math

import pytest
import torch

from regard.kernels.softmax import masked_softmax

POISON = [math.nan, math.inf, -math.inf, 1e30]


def _by_hand(row, allowed):
    kept = [x for x, may in zip(row, allowed, strict=True) if may]
    if not kept:
        return [0.0] * len(row)
    peak = max(kept)
    total = sum(math.exp(x - peak) for x in kept)
    return [
        math.exp(x - peak) / total if may else 0.0 for x, may in zip(row, allowed, strict=True)
    ]


def test_each_row_is_the_softmax_of_its_permitted_scores():
    torch.manual_seed(2)
    scores = torch.randn(3, 7, dtype=torch.float64)
    mask = torch.tensor([[True] * 7, [True, False] * 3 + [True], [False] * 7])
    expected = [_by_hand(r, m) for r, m in zip(scores.tolist(), mask.tolist(), strict=True)]
    torch.testing.assert_close(
        masked_softmax(scores, mask), torch.tensor(expected, dtype=torch.float64)
    )


@pytest.mark.parametrize("poison", POISON)
def test_what_stands_at_a_forbidden_position_changes_nothing_forward_or_backward(poison):
    mask = torch.tensor([[True, False, True], [False, False, False]])
    clean = torch.tensor([[0.3, 0.0, -1.2], [0.0, 0.0, 0.0]])
    upstream = torch.tensor([[0.7, 5.0, -0.4], [1.0, 2.0, 3.0]])
    found = []
    for fill in (0.0, poison):
        scores = clean.masked_fill(~mask, fill).requires_grad_()
        weights = masked_softmax(scores, mask)
        weights.backward(upstream)
        found.append((weights.detach(), scores.grad))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert (found[1][0][~mask] == 0).all()
    assert (found[1][1][~mask] == 0).all()
    assert (found[1][1][0, [0, 2]] != 0).all()


def test_scores_far_out_of_the_exponentials_range_are_no_trouble():
    scores = torch.tensor([[1e4, 1e4, -1e4]])
    assert masked_softmax(scores, torch.ones(1, 3, dtype=torch.bool)).tolist() == [
        [0.5, 0.5, 0.0]
    ]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_normalised_in_float32(dtype):
    # 4,099 equal weights: a sum in half precision would stop growing long before the end.
    weights = masked_softmax(torch.zeros(1, 4099, dtype=dtype), None)
    assert weights.dtype == dtype
    expected = torch.full((1, 4099), 1 / 4099).to(dtype)
    assert torch.equal(weights, expected)


def test_its_gradient_agrees_with_finite_differences():
    torch.manual_seed(3)
    scores = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[True, True, False, True, True], [False] * 5])
    assert torch.autograd.gradcheck(lambda x: masked_softmax(x, mask), scores)


def test_it_compiles_in_one_piece():
    mask = torch.tensor([[True, False, True], [False, False, False]])
    scores = torch.randn(2, 3)
    compiled = torch.compile(masked_softmax, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(scores, mask), masked_softmax(scores, mask))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_infinite_scores_give_the_limit_of_large_ones_and_never_nan(dtype, masked):
    inf = math.inf
    rows = [[1.0, inf, -3.0, inf], [-inf, 0.0, -inf, 0.0], [-inf] * 4, [1.0, inf, inf, inf]]
    scores = torch.tensor(rows, dtype=dtype, requires_grad=True)
    mask = torch.ones(4, 4, dtype=torch.bool) if masked else None
    half = [[0.0, 0.5, 0.0, 0.5], [0.0, 0.5, 0.0, 0.5], [0.0] * 4, [0.0, *[1 / 3] * 3]]
    weights = masked_softmax(scores, mask)
    torch.testing.assert_close(weights, torch.tensor(half, dtype=dtype))
    assert weights[2].count_nonzero() == 0
    weights[:, 1].sum().backward()
    assert torch.isfinite(scores.grad).all()
    assert scores.grad[2].count_nonzero() == 0


def test_a_nan_that_may_be_attended_shows():
    weights = masked_softmax(torch.tensor([[1.0, math.nan], [1.0, 1.0]]), None)
    assert weights[0].isnan().all()
    assert weights[1].tolist() == [0.5, 0.5]


def test_under_vmap_infinite_scores_give_the_same():
    scores = torch.tensor([[1.0, math.inf, 2.0], [-math.inf] * 3])
    found = torch.func.vmap(lambda row: masked_softmax(row, None))(scores)
    assert found.tolist() == [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
