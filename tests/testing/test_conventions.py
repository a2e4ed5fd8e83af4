"""The same attention in every convention a subject can have, told rightly and wrongly."""

import numpy as np
import pytest

import regard as rg
from regard.testing import ContractBroken, Subject, clauses, contract


def by_lengths(query, key, value, mask=None, need_weights=True):
    return rg.attend(query, key, value, key_lengths=mask, need_weights=need_weights)


def by_keys(query, key, value, mask=None, need_weights=True):
    if mask is not None:
        mask = np.repeat(mask[:, None], query.shape[1], axis=1)
    return rg.attend(query, key, value, mask=mask, need_weights=need_weights)


def by_padding(query, key, value, mask=None, need_weights=True):
    return by_keys(query, key, value, None if mask is None else ~mask, need_weights)


def by_pairs_to_ignore(query, key, value, mask=None, need_weights=True):
    mask = None if mask is None else ~mask
    return rg.attend(query, key, value, mask=mask, need_weights=need_weights)


def time_first(query, key, value, mask=None, need_weights=True):
    query, key, value = (x.swapaxes(0, 1) for x in (query, key, value))
    context, weights = rg.attend(query, key, value, mask=mask, need_weights=need_weights)
    return context.swapaxes(0, 1), weights


def one_example(query, key, value, mask=None, need_weights=True):
    return rg.attend(query, key, value, mask=mask, need_weights=need_weights)


def contexts_alone(query, key, value, mask=None):
    return rg.attend(query, key, value, mask=mask).context


def weights_alone(query, key, mask=None):
    return rg.attend(query, key, mask=mask).weights


def one_step(query, key, mask=None):
    return rg.dot_attention(query, key, mask=mask)


CONVENTIONS = {
    "lengths": (by_lengths, {"mask": "lengths"}),
    "one mask for all queries": (by_keys, {"mask_axes": "T_enc"}),
    "padding": (by_padding, {"mask": "ignore", "mask_axes": "T_enc"}),
    "pairs to ignore": (by_pairs_to_ignore, {"mask": "ignore"}),
    "time first": (time_first, {"layout": "T batch d"}),
    "one example": (one_example, {"layout": "T d"}),
    "contexts alone": (contexts_alone, {"weights": "never"}),
    "weights alone": (weights_alone, {"weights": "only", "d_v": None}),
    "one step": (
        one_step,
        {"layout": "batch d", "mask_axes": "T_enc", "weights": "always", "d_v": None},
    ),
    "one step of one example": (
        one_step,
        {"layout": "d", "mask_axes": "T_enc", "weights": "always", "d_v": None},
    ),
}


def subject(call, **options):
    return Subject(**{"call": call, "d_s": 5, "d_h": 5, "d_v": 7, "oracle": "dot", **options})


@pytest.mark.parametrize("name", CONVENTIONS)
def test_an_attention_told_rightly_keeps_every_clause_about_numbers(name):
    call, options = CONVENTIONS[name]
    report = contract(subject(call, **options), clauses=range(1, 11))
    assert report.ok, str(report)
    assert sum(verdict.outcome == "held" for verdict in report.verdicts) >= 6


@pytest.mark.parametrize(
    ("call", "options"),
    [
        (by_padding, {"mask": "attend", "mask_axes": "T_enc"}),
        (by_keys, {"mask": "ignore", "mask_axes": "T_enc"}),
        (by_pairs_to_ignore, {"mask": "attend"}),
    ],
)
def test_a_mask_told_the_wrong_way_round_breaks_clause_2(call, options):
    with pytest.raises(ContractBroken, match="weights of head 0"):
        clauses()[1].check(subject(call, **options))


def test_sequences_told_in_the_wrong_order_are_refused_before_any_clause():
    with pytest.raises(rg.RegardError):
        contract(subject(time_first, layout="batch T d"))


def test_self_attention_that_never_projects_keeps_every_clause_about_numbers():
    torch = pytest.importorskip("torch")

    def attention(x, mask=None, need_weights=True):
        return rg.attend(x, x, mask=mask, need_weights=need_weights)

    told = Subject(
        call=attention,
        d_s=5,
        d_h=5,
        library="torch",
        self_attention=True,
        oracle="dot",
        names={"query": "x"},
    )
    report = contract(told, clauses=range(1, 11))
    assert report.ok, str(report)
    assert torch.is_tensor(attention(torch.ones(2, 3, 5)).context)
