"""The width that a number of heads divides is the model's: heads * d_head."""

import re
from dataclasses import replace

from regard.check.contract import Contract, Returned
from regard.check.roles.behaviour import Runner
from regard.check.roles.known import Known
from regard.errors import RegardError

__all__ = ["headed"]


def headed(known: Known, contract: Contract) -> Contract:
    """Call the width of the queries d_model where a number of heads divides it."""
    heads = [n for n, v in contract.values.items() if v == "heads"]
    every = set(replace(contract, values={}).every_axis)
    query = next((p.name for p in known.cast if p.role in ("query", "self")), None)
    tokens = contract.inputs.get(query or "", "").split()
    if not heads or not tokens or every & {"heads", "d_head", "d_model", "kv_heads"}:
        return contract
    width = tokens[-1]
    own = f"({'|'.join(heads)})"
    split = rf"(//|/|%) ?{own}\b|\b{own}, -1|-1, {own}\b"
    if not width.startswith("d_") or not re.search(split, known.reading.code):
        return contract
    inputs = {
        n: " ".join("d_model" if t == width else t for t in a.split())
        for n, a in contract.inputs.items()
    }
    named = replace(contract, inputs=inputs, returns=_renamed(contract.returns, width))
    try:
        runs = all(Runner(known.loaded, named, which).run() is not None for which in (0, 1))
    except (RegardError, ValueError, IndexError, KeyError):
        runs = False
    return named if runs else contract


def _renamed(returns: tuple[Returned, ...], width: str) -> tuple[Returned, ...]:
    """Results with the axis of one name called d_model."""
    return tuple(
        replace(r, axes=" ".join("d_model" if t == width else t for t in r.axes.split()))
        for r in returns
    )
