import pytest
import torch

from regard.kernels import additive, native
from regard.kernels.additive import additive_scores
from regard.kernels.prepared import prepare

D_ATTN = 7


def _given(batch=(2, 3), T_dec=5, T_enc=11, dtype=torch.float64, grad=False):
    torch.manual_seed(11)
    shapes = ((*batch, T_dec, D_ATTN), (*batch, T_enc, D_ATTN), (D_ATTN,))
    return [torch.randn(shape, dtype=dtype).requires_grad_(grad) for shape in shapes]


def _formula(query, key, v):
    return torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ v


@pytest.mark.parametrize("block", [1, 8 * D_ATTN * 11 * 2, 8 * D_ATTN * 11 * 5 * 2, 2**20])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)
def test_scores_and_gradients_are_the_formulas_whatever_the_block(monkeypatch, block, batch):
    monkeypatch.setattr(additive, "_BLOCK_BYTES", {"cpu": block})
    given = _given(batch, grad=True)
    upstream = torch.randn(*batch, 5, 11, dtype=torch.float64)
    scores, expected = additive_scores(*given), _formula(*given)
    torch.testing.assert_close(scores, expected, rtol=0, atol=1e-13)
    got = torch.autograd.grad(scores, given, upstream)
    wanted = torch.autograd.grad(expected, given, upstream)
    for mine, theirs in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)
    with torch.no_grad():
        assert torch.equal(additive_scores(*given), scores)


def test_first_and_second_derivatives_agree_with_finite_differences():
    given = _given((), T_dec=2, T_enc=3, grad=True)
    assert torch.autograd.gradcheck(additive_scores, given)
    assert torch.autograd.gradgradcheck(additive_scores, given)


def test_a_second_derivative_is_right_where_one_input_is_made_of_another():
    query, _, v = _given((), T_dec=3, T_enc=3, grad=True)

    def hessian_product(score):
        first = torch.autograd.grad(
            score(query, query * 2, v).square().sum(), query, create_graph=True
        )
        return torch.autograd.grad(first[0].sum(), query)[0]

    torch.testing.assert_close(
        hessian_product(additive_scores), hessian_product(_formula), rtol=1e-10, atol=1e-10
    )


def test_keys_prepared_before_give_the_same_bits():
    query, key, v = _given(dtype=torch.float32)
    assert torch.equal(
        additive_scores(query, key, v), additive_scores(query, key, v, keys=prepare(key))
    )


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_take_the_plain_formula(dtype):
    given = _given(dtype=dtype)
    scores = additive_scores(*given)
    assert scores.dtype == dtype
    expected = _formula(*(each.float() for each in given))
    torch.testing.assert_close(scores.float(), expected, rtol=0, atol=0.15)


@pytest.mark.parametrize(("T_dec", "T_enc"), [(0, 3), (3, 0)])
def test_no_queries_or_no_keys_give_no_scores(T_dec, T_enc):
    given = _given((2,), T_dec, T_enc, grad=True)
    scores = additive_scores(*given)
    assert scores.shape == (2, T_dec, T_enc)
    scores.sum().backward()
    assert (given[2].grad == 0).all()


@pytest.mark.parametrize("path", ["blocks", "native"])
def test_training_never_holds_all_pairs_at_once(monkeypatch, path):
    if path == "native" and not native.available():
        pytest.skip(str(native.reason()))
    monkeypatch.setenv("REGARD_KERNELS", path)

    # The largest tensor that autograd keeps, and the largest a backward makes, stay far below
    # the (T_dec, T_enc, d_attn) array of pairs.
    class Largest(torch.utils._python_dispatch.TorchDispatchMode):
        numel = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            for each in out if isinstance(out, tuple | list) else (out,):
                if isinstance(each, torch.Tensor):
                    self.numel = max(self.numel, each.numel())
            return out

    given = _given((1,), 499, 503, dtype=torch.float32, grad=True)
    with Largest() as largest:
        additive_scores(*given).sum().backward()
    pairs = 499 * 503 * D_ATTN
    assert largest.numel < pairs / 5
    with Largest() as largest:
        _formula(*given).sum().backward()
    assert largest.numel >= pairs  # the measure does see the array where it exists
