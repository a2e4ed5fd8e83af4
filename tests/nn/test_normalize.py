import math

import pytest
import torch

from regard.attention.sparse import entmax15, sparsemax
from regard.errors import ConventionError, ShapeError
from regard.nn import AdditiveAttention, LuongAttention, MultiHeadAttention

BATCH, T_DEC, T_ENC, D_S, D_H, D_ATTN = 3, 5, 7, 11, 13, 17
LENGTHS = torch.tensor([7, 3, 0])
FUNCTIONS = {"sparsemax": sparsemax, "entmax15": entmax15}
KINDS = pytest.mark.parametrize("kind", ["additive", "general", "heads"])
NAMES = pytest.mark.parametrize("name", list(FUNCTIONS))


def _module(kind, normalizer):
    torch.manual_seed(79)
    if kind == "additive":
        return AdditiveAttention(D_S, D_H, D_ATTN, normalizer=normalizer).double()
    if kind == "general":
        return LuongAttention(D_S, D_H, "general", normalizer=normalizer).double()
    return MultiHeadAttention(D_S, 1, kdim=D_H, vdim=D_H, normalizer=normalizer).double()


def _given():
    torch.manual_seed(83)
    return (
        torch.randn(BATCH, T_DEC, D_S, dtype=torch.float64),
        torch.randn(BATCH, T_ENC, D_H, dtype=torch.float64),
    )


@NAMES
@KINDS
def test_a_module_normalizes_its_own_scores_with_what_it_was_given(kind, name):
    scores = []

    def spy(e, mask):
        scores.append((e, mask))
        return FUNCTIONS[name](e, mask=mask)

    query, key = _given()
    expected = _module(kind, spy)(query, key, key_lengths=LENGTHS)
    got = _module(kind, name)(query, key, key_lengths=LENGTHS)
    assert torch.equal(got.weights, expected.weights)
    assert torch.equal(got.context, expected.context)
    (e, mask) = scores[0]
    assert mask.shape == e.shape
    assert (got.weights[1, ..., 3:] == 0).all()
    assert (got.weights[2] == 0).all()
    rows = got.weights[:2].sum(-1)
    torch.testing.assert_close(rows, torch.ones_like(rows))


@KINDS
def test_the_default_is_the_softmax(kind):
    query, key = _given()
    plain = _module(kind, "softmax")(query, key, key_lengths=LENGTHS)
    seen = _module(kind, lambda e, mask: e.masked_fill(~mask, -1e300).softmax(-1) * mask)(
        query, key, key_lengths=LENGTHS
    )
    torch.testing.assert_close(plain.weights, seen.weights, rtol=0, atol=1e-14)


@NAMES
@KINDS
@pytest.mark.parametrize("poison", [math.nan, 1e30])
def test_padding_reaches_neither_result_nor_gradient(kind, name, poison):
    module, found = _module(kind, name), []
    for fill in (0.25, poison):
        query, key = _given()
        key[1, 3:] = key[2] = fill
        leaves = [query.requires_grad_(), key.requires_grad_(), *module.parameters()]
        out = module(query, key, key_lengths=LENGTHS)
        grads = torch.autograd.grad(out.context.square().sum(), leaves)
        found.append([*(x.detach() for x in out), *grads])
    assert all(x.isfinite().all() for x in found[0])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("kind", ["additive", "general", "heads"])
def test_an_unknown_normalizer_is_refused_at_construction(kind):
    with pytest.raises(ConventionError, match="there is no normalizer 'argmax'"):
        _module(kind, "argmax")


def test_a_normalizer_that_changes_the_shape_is_refused():
    query, key = _given()
    with pytest.raises(ShapeError, match="the normalizer's weights do not fit its scores"):
        _module("general", lambda e, mask: e.sum(-1))(query, key)
