import pytest
import torch

from regard.kernels.pairs import prepare_keys, prepare_queries, reciprocals

B, T_DEC, T_ENC, D_ATTN = 2, 3, 5, 7


def _tanh_by_pairs(query, key):
    """The kernel's tangents, and whether it took the factored path."""
    keys = prepare_keys(key)
    e = prepare_queries(query, keys).unsqueeze(-2)
    f = keys.factor.unsqueeze(-3)
    out = query.new_empty(B, T_DEC, T_ENC, D_ATTN)
    r = reciprocals(e, f, factored=keys.factored, out=out)
    return 1 - 2 * r, keys.factored


def _regime(name):
    torch.manual_seed(7)
    query, key = torch.randn(B, T_DEC, D_ATTN), torch.randn(B, T_ENC, D_ATTN)
    if name == "wide":
        return query * 3, key * 3
    if name == "opposite offsets":
        return query - 60, key + 60
    if name == "an offset a feature":
        offset = 20 * torch.randn(D_ATTN)
        return query - offset, key + offset
    if name == "far queries":
        query[0] *= 1e4  # exponentials of 0 and infinity
        return query, key
    if name == "as wide as factoring goes":
        key[0, 0, 0], key[0, 1, 0] = 39.0, -39.0
        query[0, 0, 0], query[0, 1, 0] = 200.0, -200.0
        return query, key
    if name == "one far key":
        key[0, 0] += 100
    if name == "far keys":
        return query, key * 1e3
    return query, key


@pytest.mark.parametrize(
    ("regime", "factored"),
    [
        ("plain", True),
        ("wide", True),
        ("opposite offsets", True),
        ("an offset a feature", True),
        ("far queries", True),
        ("as wide as factoring goes", True),
        ("one far key", False),
        ("far keys", False),
    ],
)
def test_the_pairs_tangents_are_right_in_every_regime(regime, factored):
    query, key = _regime(regime)
    got, took = _tanh_by_pairs(query, key)
    expected = torch.tanh(query.double().unsqueeze(-2) + key.double().unsqueeze(-3))
    assert took is factored
    # Offsets of 60 cost the sum q + k itself some 4e-6 in float32.
    tolerance = 2e-5 if "offset" in regime or "far" in regime else 5e-7
    torch.testing.assert_close(got.double(), expected, rtol=0, atol=tolerance)


def test_double_precision_is_used_where_it_is_given():
    query, key = (each.double() for each in _regime("wide"))
    got, _ = _tanh_by_pairs(query, key)
    expected = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3))
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-14)


def test_a_nan_among_the_keys_stays_with_its_own_pairs():
    query, key = _regime("plain")
    key[0, 1, 2] = float("nan")
    got, took = _tanh_by_pairs(query, key)
    assert not took
    assert torch.equal(got.isnan(), torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)).isnan())


def test_no_keys_at_all_are_prepared_too():
    keys = prepare_keys(torch.zeros(B, 0, D_ATTN))
    assert keys.factor.shape == (B, 0, D_ATTN)


def test_selecting_examples_selects_factors_and_centres():
    keys = prepare_keys(_regime("an offset a feature")[1])
    chosen = keys.select(torch.tensor([1, 1, 0]))
    assert torch.equal(chosen.factor[0], keys.factor[1])
    assert torch.equal(chosen.centre[2], keys.centre[0])
    assert chosen.factored is keys.factored is True
