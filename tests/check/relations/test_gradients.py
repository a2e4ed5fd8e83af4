"""Gradients: finite where the result is, and none for keys that no query may attend to."""

import pytest

from regard.check.contract import Contract
from regard.check.relations.base import Results, judge

pytest.importorskip("torch")

SOURCE = '''
import torch


def attend(query, keys, keep):
    """keep (batch, T_enc): True on real keys; an example may have none."""
    hidden = ~keep[:, None]
    scores = query @ keys.transpose(1, 2)
    masked = scores.masked_fill(hidden, -1e9)
    weights = masked.softmax(dim=-1).masked_fill(hidden, 0.0)
    # detach and no_grad are words that gradients are asked about
    return weights @ keys, weights
'''
CONTRACT = {
    "inputs": {
        "query": "batch T_dec d_h",
        "keys": "batch T_enc d_h",
        "keep": "batch T_enc",
    },
    "kinds": {"keep": "keep"},
    "returns": [
        {"name": "context", "axes": "batch T_dec d_h"},
        {"name": "weights", "axes": "batch T_dec T_enc"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
    "score": "dot",
    "all_masked": "zeros",
}


def judged(old: str = "", new: str = "", **statements: object) -> Results:
    assert old in SOURCE
    source = SOURCE.replace(old, new, 1) if old else SOURCE
    contract = Contract.from_mapping({**CONTRACT, **statements})
    results = judge(source, "/subjects/learns.py", "attend", contract, seconds=200.0)
    assert not results.broken, results.broken
    return results


def failures(results: Results) -> dict[str, str]:
    return {v.relation: v.rule for v in results.verdicts if v.state == "fails"}


def test_a_masked_softmax_has_finite_gradients_and_none_for_padding() -> None:
    results = judged()
    assert failures(results) == {}
    assert {"gradient-finite", "gradient-of-hidden-keys"} <= set(results.names)


NAN = (
    "masked.softmax(dim=-1).masked_fill(hidden, 0.0)",
    "(scores + torch.where(hidden, -torch.inf, 0.0)).softmax(dim=-1).nan_to_num()",
)


def test_a_nan_that_is_replaced_in_the_result_comes_back_in_the_gradient() -> None:
    assert failures(judged(*NAN)) == {"gradient-finite": "RG702"}


def test_a_query_without_keys_is_asked_about_only_where_it_may_occur() -> None:
    assert failures(judged(*NAN, all_masked=None)) == {}


def test_a_gradient_that_passes_a_mask_is_found_though_no_result_shows_it() -> None:
    found = failures(
        judged(
            "    return weights",
            "    every = scores.softmax(dim=-1)\n"
            "    weights = weights.detach() + every - every.detach()\n"
            "    return weights",
        )
    )
    assert found["gradient-of-hidden-keys"] == "RG703"
    assert "padding-unread" not in found


SINGLE = (
    "query @ keys.transpose(1, 2)",
    "(query.float() @ keys.transpose(1, 2).float()).to(query.dtype)",
)


def test_scores_in_single_precision_have_the_slopes_of_wider_steps() -> None:
    results = judged(*SINGLE)
    assert failures(results) == {}
    assert "gradient-is-derivative" in results.names


def test_half_of_a_gradient_is_found_in_single_precision_too() -> None:
    half = f"scores = 0.5 * ({SINGLE[1]}).detach() + 0.5 * ({SINGLE[1]})"
    found = failures(judged(f"scores = {SINGLE[0]}", half))
    assert found["gradient-is-derivative"] == "RG704"
