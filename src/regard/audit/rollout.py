r"""Attention followed through the layers: rollout and flow.

With the residual connection counted as half of each layer, :math:`A_l = \mathrm{rownorm}(\bar
W_l + I)` over the heads' mean, rollout is the product :math:`R_l = A_l R_{l-1}` and flow is the
largest flow through the same graph [1]_. Both leave out values, norms and feed-forward layers,
and the half is an assumption. In a causal decoder early tokens are seen by more rows, so a
token's value is divided by what equal attention would have given it.

References
----------
.. [1] Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020.
   arXiv:2005.00928
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.audit.flow import max_flow
from regard.audit.kendall import spearman
from regard.audit.measure import Columns, Measure, means_of
from regard.audit.protocol import Layered, Numbers
from regard.audit.ranking import leave_one_out
from regard.audit.sample import Sample
from regard.audit.verdict import Row, Table

__all__ = ["MEASURE", "flow", "rollout", "run", "with_residual"]

_FLOWS = 20  # inputs; a flow is a search through the graph for each token
_LONGEST = 40
_WAYS = ("last layer", "rollout", "flow")


def with_residual(layers: Numbers) -> Numbers:
    """Return (layers, T, T): the heads' mean and the identity, rows summing to 1.

    Parameters
    ----------
    layers : (layers, heads, T, T)
        First layer first.
    """
    mean = layers.mean(1) + np.eye(layers.shape[-1])
    found: Numbers = mean / mean.sum(-1, keepdims=True)
    return found


def rollout(layers: Numbers, *, receptive: bool = False) -> Numbers:
    """Return (T, T): how much of each input token reaches each place of the last layer.

    Parameters
    ----------
    layers : (layers, heads, T, T)
    receptive : bool
        Divide by what equal attention over the places that each row may see would give, and
        normalise: for causal models.
    """
    found = _product(with_residual(layers))
    if receptive:
        seen = (layers > 0).any((0, 1)) | np.eye(layers.shape[-1], dtype=bool)
        equal = seen / seen.sum(-1, keepdims=True)
        expected = _product(with_residual(np.repeat(equal[None, None], len(layers), 0)))
        found = np.where(expected > 0, found / np.where(expected > 0, expected, 1.0), 0.0)
        found = found / found.sum(-1, keepdims=True)
    return found


def flow(layers: Numbers, place: int) -> Numbers:
    """Return (T,): the largest flow from one place of the last layer to each token, normalised.

    Parameters
    ----------
    layers : (layers, heads, T, T)
    place : int
        Negative counts from the end.
    """
    joined = with_residual(layers)
    T = joined.shape[-1]
    found = np.array([max_flow(joined, place % T, token) for token in range(T)])
    total = found.sum()
    scaled: Numbers = found / total if total > 0 else found
    return scaled


def run(sample: Sample, chunk: Sequence[int]) -> dict[str, list[Any]]:
    """Return Spearman's correlation with leave-one-out, and the drop without the top token.

    Returns
    -------
    columns : dict
        ``last layer.rank``, ``last layer.top1``, and the same of ``rollout`` and ``flow``; None
        where it was not computed.
    """
    case = sample.case
    assert isinstance(case, Layered)  # or `missing` had said so
    left_out = leave_one_out(sample, chunk)
    columns: dict[str, list[Any]] = {}
    for row, number in enumerate(chunk):
        layers = np.asarray(sample.per_input(case.layers, [number])[0], dtype=np.float64)
        place = case.read_from
        causal = bool(np.triu(layers[0, 0], 1).max(initial=0.0) == 0)
        maps: dict[str, Numbers | None] = {
            "last layer": layers[-1].mean(0)[place],
            "rollout": rollout(layers, receptive=causal)[place],
            "flow": None,
        }
        if number < _FLOWS and layers.shape[-1] <= _LONGEST:
            maps["flow"] = flow(layers, place)
        drop = left_out[row].drop
        asked = np.flatnonzero(np.isfinite(drop))
        for name, relevance in maps.items():
            rank = None if relevance is None else spearman(relevance[asked], drop[asked])
            top = None if relevance is None else drop[asked[relevance[asked].argmax()]]
            columns.setdefault(f"{name}.rank", []).append(_number(rank))
            columns.setdefault(f"{name}.top1", []).append(_number(top))
    return columns


def table(columns: Columns, seed: int) -> Table:
    """Return the means of each way."""
    mean = means_of(columns, seed)
    rows = []
    for name in _WAYS:
        rank, top = (
            np.asarray(columns[f"{name}.{figure}"], dtype=np.float64)
            for figure in ("rank", "top1")
        )
        if np.isfinite(rank).any():
            rows.append(Row(f"{name}: Spearman with leave-one-out", mean(rank)))
            rows.append(Row(f"{name}: drop without its top token", mean(top)))
    return Table(
        "rollout",
        "Attention followed through the layers",
        "whether following attention down to the input ranks tokens better than one layer does",
        "values, norms and feed-forward layers, which it leaves out; the residual's half is an "
        "assumption",
        tuple(rows),
    )


def missing(sample: Sample) -> str | None:
    """Return why there are no layers to follow, or None."""
    return (
        None if isinstance(sample.case, Layered) else "the case has no layers of self-attention"
    )


def _product(joined: Numbers) -> Numbers:
    found: Numbers = joined[0]
    for layer in joined[1:]:
        found = layer @ found
    return found


def _number(value: Any) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


MEASURE = Measure("rollout", run, table, missing)
