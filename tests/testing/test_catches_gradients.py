"""What only a backward pass shows: attentions whose results are right and gradients wrong."""

from functools import partial

import pytest

from regard.testing import Subject, clauses

torch = pytest.importorskip("torch")
CLAUSES = {clause.number: clause for clause in clauses()}


def attention(query, key, value, mask=None, *, normalise, change=lambda w: w, clear=True):
    if mask is not None and clear:
        used = mask.any(1).unsqueeze(-1)
        key, value = key.masked_fill(~used, 0), value.masked_fill(~used, 0)
    weights = change(normalise(query @ key.transpose(-1, -2), mask))
    return weights @ value, weights


def safe(scores, may):
    if may is None:
        return scores.softmax(-1)
    low = torch.finfo(scores.dtype).min
    return scores.masked_fill(~may, low).softmax(-1).masked_fill(~may, 0)


def nan_then_zero(scores, may):
    """The commonest repair of NaN rows: right forward, NaN backward."""
    if may is None:
        return scores.softmax(-1)
    bias = torch.zeros_like(scores).masked_fill(~may, -torch.inf)
    weights = (scores + bias).softmax(-1)
    return torch.where(may, weights, torch.zeros_like(weights))


def subject(**options):
    call = partial(attention, **{"normalise": safe, **options})
    return Subject(
        call=call, library="torch", d_s=5, d_h=5, d_v=7, weights="always", oracle="dot"
    )


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad * 1.001


class Leaky(torch.autograd.Function):
    """Passes a little of the gradient to forbidden keys as well."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad + 1e-9


def leaking(query, key, value, mask=None):
    return attention(query, Leaky.apply(key), value, mask, normalise=safe)


@pytest.mark.parametrize("number", range(1, 11))
def test_an_honest_attention_keeps_every_clause(number):
    CLAUSES[number].check(subject())


def test_a_row_that_is_repaired_after_the_softmax_breaks_clause_3():
    broken = subject(normalise=nan_then_zero)
    assert CLAUSES[1](broken).outcome == "held"
    verdict = CLAUSES[3](broken)
    assert verdict.outcome == "broken"
    assert "gradient" in verdict.evidence


def test_a_gradient_that_reaches_padding_breaks_clause_2():
    broken = Subject(call=leaking, library="torch", d_s=5, d_h=5, d_v=7, weights="always")
    verdict = CLAUSES[2](broken)
    assert verdict.outcome == "broken"
    assert "gradient of key" in verdict.evidence


def test_padding_that_is_not_cleared_breaks_clause_2():
    assert CLAUSES[2](subject(clear=False)).outcome == "broken"


@pytest.mark.parametrize(
    "change", [torch.Tensor.detach, Twice.apply], ids=["detached weights", "scaled by 1.001"]
)
def test_a_wrong_gradient_breaks_clause_9_and_no_clause_about_results(change):
    broken = subject(change=change)
    assert CLAUSES[9](broken).outcome == "broken"
    assert CLAUSES[10](broken).outcome == "held"


def test_a_check_that_comes_after_the_arithmetic_breaks_clause_11():
    def late(query, key, value, mask=None):
        if mask is not None and mask.dtype is not torch.bool:
            query @ query.transpose(-1, -2)
            raise TypeError(f"mask is {mask.dtype}")
        return attention(query, key, value, mask, normalise=safe)

    broken = Subject(call=late, library="torch", d_s=5, d_h=5, d_v=7, weights="always")
    assert (
        "computed bmm first: a mask of integers, a mask of floats"
        in CLAUSES[11](broken).evidence
    )
