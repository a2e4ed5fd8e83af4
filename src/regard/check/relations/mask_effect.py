"""A mask that forbids something is heard: without it, a result is another one."""

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, near, relation
from regard.check.relations.layout import layout
from regard.check.relations.padding import mask_of
from regard.check.relations.receptive import COLD, cool
from regard.check.subject import Outcome

__all__ = ["mask_matters", "query_masks_matter"]


@relation("mask-matters", "a mask that forbids something changes a result", cost=1)
def mask_matters(bench: Bench) -> Verdict | None:
    """Allow every key: something must change."""
    here = layout(bench)
    names = [n for n in here.key_masks() if isinstance(bench.probe.args[n], np.ndarray)]
    names = [
        n for n in names if bench.contract.kinds[n] not in ("zero_padded", "token_ids_pad0")
    ]
    for name in names:
        keep = here.keep(name)
        if keep.all() or keep.shape[1] > 1:
            continue
        full = {name: mask_of(here, name, np.ones_like(keep[:, 0]))}
        out, small = bench.ok(**full), cool(here, COLD)
        if out is None or not _is_still(bench.out, out):
            continue
        # Sparse weights may leave out by themselves what the mask hides.
        cold, open_ = bench.ok(**small), bench.ok(**small, **full)
        if cold is None or open_ is None or _is_still(cold, open_):
            return fails(
                "RG207",
                f"`{name}` changes no result",
                about=name,
                measured=(
                    Measurement("change when every key is allowed", "0", "must not be 0"),
                ),
                depends_on=(f"kinds.{name}",),
                hidden="every shape is right and nothing raises",
            )
    return holds() if names else None


@relation("query-mask-matters", "a mask over the queries changes a result", cost=1)
def query_masks_matter(bench: Bench) -> Verdict | None:
    """Change masks that lie over the queries alone."""
    here = layout(bench)
    asked = False
    for name, mask in bench.probe.masks.items():
        if name in here.key_masks() or not isinstance(bench.probe.args[name], np.ndarray):
            continue
        if bench.contract.kinds[name] in ("lengths", "zero_padded", "additive"):
            continue
        asked = True
        value = bench.probe.args[name]
        other = ~value if value.dtype == bool else (1 - value).astype(value.dtype)
        out = bench.ok(**{name: other})
        if out is None:
            continue
        if _is_still(bench.out, out):
            return fails(
                "RG207",
                f"`{name}` changes no result",
                about=name,
                measured=(Measurement("change when the mask is turned", "0", "must not be 0"),),
                depends_on=(f"kinds.{name}",),
                hidden=f"every shape is right; {mask.axis} is masked nowhere",
            )
    return holds() if asked else None


def _is_still(one: Outcome, other: Outcome) -> bool:
    """Whether no result of numbers differs."""
    return all(
        near(b, a, 1e-6)
        for a, b in zip(one.outputs, other.outputs, strict=False)
        if a is not None and b is not None and a.dtype.kind == "f"
    )
