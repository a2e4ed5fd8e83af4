import pytest
import torch

from regard.kernels import native
from regard.kernels.attend_op import additive_attention
from regard.kernels.softmax import both, masked_softmax

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.reason()))

MASKS = ["free", "by key", "by pair", "both"]


def _given(grad=True):
    torch.manual_seed(5)
    shapes = ((2, 3, 5, 7), (2, 3, 11, 7), (7,), (2, 3, 11, 13))
    return [torch.randn(shape).requires_grad_(grad) for shape in shapes]


def _masks(which):
    by_key = torch.arange(11) < torch.tensor([[11, 5, 2], [1, 0, 7]]).unsqueeze(-1)
    by_pair = torch.arange(11) <= torch.arange(5).unsqueeze(-1) * 2
    by_pair = by_pair.repeat(2, 3, 1, 1)
    by_pair[0, 1, 3] = False
    return {
        "key_mask": by_key if which in ("by key", "both") else None,
        "mask": by_pair if which in ("by pair", "both") else None,
    }


def _formula(query, key, v, value, key_mask=None, mask=None):
    scores = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ v
    weights = masked_softmax(scores, both(key_mask, mask))
    return weights @ value, weights


@pytest.mark.parametrize("which", MASKS)
def test_the_operators_keep_pytorchs_rules(which):
    masks = _masks(which)
    given = (*_given(), masks["key_mask"], masks["mask"])
    torch.library.opcheck(torch.ops.regard.additive_attention.default, given)
    weights = torch.softmax(torch.randn(2, 3, 5, 11), -1)
    for upstream in ((torch.randn(2, 3, 5, 13), None), (None, torch.randn(2, 3, 5, 11))):
        given = (*_given(grad=False), weights, *upstream, masks["key_mask"])
        torch.library.opcheck(torch.ops.regard.additive_attention_backward.default, given)


@pytest.mark.parametrize("which", MASKS)
@pytest.mark.parametrize("of", ["context", "weights", "both"])
def test_results_and_gradients_are_the_formulas_in_float64(which, of):
    single, masks = _given(), _masks(which)
    double = [each.detach().double().requires_grad_() for each in single]
    mine, exact = additive_attention(*single, **masks), _formula(*double, **masks)
    for got, wanted in zip(mine, exact, strict=True):
        torch.testing.assert_close(got.double(), wanted, rtol=0, atol=2e-6)
    upstream = [torch.randn(each.shape) for each in mine]
    chosen = {"context": [0], "weights": [1], "both": [0, 1]}[of]
    found = torch.autograd.grad(
        [mine[i] for i in chosen], single, [upstream[i] for i in chosen], allow_unused=True
    )
    expected = torch.autograd.grad(
        [exact[i] for i in chosen],
        double,
        [upstream[i].double() for i in chosen],
        allow_unused=True,
    )
    for got, wanted in zip(found, expected, strict=True):
        if wanted is None:  # the weights do not know the values
            assert got is None or not got.any()
            continue
        torch.testing.assert_close(
            got.double(), wanted, rtol=0, atol=2e-6 * float(wanted.abs().max())
        )


def test_nan_in_padding_reaches_no_result_and_no_gradient():
    given, masks = _given(), _masks("by key")
    lost = ~masks["key_mask"]
    with torch.no_grad():
        given[1][lost], given[3][lost] = torch.nan, torch.nan
    context, weights = additive_attention(*given, **masks)
    found = torch.autograd.grad((context.sum(), weights.square().sum()), given)
    assert all(each.isfinite().all() for each in (context, weights, *found))
    assert not found[1][lost].any()
    assert not found[3][lost].any()


def test_a_query_that_may_attend_nowhere_has_no_gradient():
    given, masks = _given(), _masks("both")
    context, weights = additive_attention(*given, **masks)
    nowhere = ~both(**masks).any(-1)
    assert nowhere.any()
    assert not context[nowhere].any()
    assert not weights[nowhere].any()
    d_query, *_ = torch.autograd.grad((context.sum(), weights.square().sum()), given)
    assert not d_query[nowhere].any()
    assert d_query[~nowhere].any()


def test_second_derivatives_are_the_formulas():
    def twice(attend, given):
        context, weights = attend(*given)
        first = torch.autograd.grad(
            context.square().sum() + weights.square().sum(), given, create_graph=True
        )
        return torch.autograd.grad(sum(each.square().sum() for each in first), given)

    single, masks = _given(), _masks("both")
    double = [each.detach().double().requires_grad_() for each in single]
    got = twice(lambda *each: additive_attention(*each, **masks), single)
    wanted = twice(lambda *each: _formula(*each, **masks), double)
    for mine, theirs in zip(got, wanted, strict=True):
        atol = 2e-5 * float(theirs.abs().max())
        torch.testing.assert_close(mine.double(), theirs, rtol=0, atol=atol)


def test_without_weights_and_gradients_none_are_made():
    given = _given(grad=False)
    context, weights = additive_attention(*given, need_weights=False)
    assert weights is None
    assert torch.equal(context, additive_attention(*given)[0])
    given[0].requires_grad_()
    recorded, weights = additive_attention(*given, need_weights=False)
    assert weights is None
    assert torch.equal(recorded, context)
    recorded.sum().backward()
    assert given[0].grad.any()


def test_strides_do_not_matter():
    *given, v, value = _given(grad=False)[0], _given(grad=False)[1], *_given(grad=False)[2:]
    turned = [each.mT.contiguous().mT for each in (*given, value)]
    spread = v.repeat_interleave(2)[::2]
    assert not any(each.is_contiguous() for each in (*turned, spread))
    expected = additive_attention(*given, v, value)
    found = additive_attention(*turned[:2], spread, turned[2])
    assert all(map(torch.equal, found, expected))


def test_float32_stays_float32_under_autocast_backward_too():
    def run():
        given = _given()
        context, _ = additive_attention(*given)
        return [context, *torch.autograd.grad(context.square().sum(), given)]

    expected = run()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = run()
    assert all(map(torch.equal, found, expected))


def test_it_compiles_in_one_piece():
    given = _given(grad=False)
    compiled = torch.compile(additive_attention, fullgraph=True, backend="aot_eager")
    assert all(map(torch.equal, compiled(*given), additive_attention(*given)))
