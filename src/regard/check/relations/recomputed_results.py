"""What is handed back beside or as the context: weights, the best key, the context itself."""

import numpy as np

from regard.check.finding import Measurement
from regard.check.oracle import expected
from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.layout import Layout, layout
from regard.check.relations.reading import Reading, merged, readings
from regard.check.relations.recomputed import agree, view_chain

__all__ = ["index", "returned_context", "returned_weights"]


@relation(
    "returned-weights-used", "the returned weights are those that made the context", cost=1
)
def returned_weights(bench: Bench) -> Verdict | None:
    """Compare the returned weights with those of the recording."""
    here = layout(bench)
    returned = here.alignment(bench.out)
    if returned is None:
        return None
    # Where no values are met, the weights are the result and are used by the caller.
    met = [r for r in readings(bench) if r.site.contraction is not None or r.site.fused]
    used = _stacked(here, met)
    if used is None:
        return None
    options = [used, *([used.mean(1, keepdims=True)] if used.shape[1] > 1 else [])]
    options += [r.met for r in met if r.met is not None]
    if any(agree(bench, returned, o) for o in options):
        return holds()
    gap = float(np.abs(returned - used).max()) if returned.shape == used.shape else float("nan")
    name = bench.contract.weights or ""
    return fails(
        "RG304",
        f"`{name}` is not what the values were weighed with",
        about=name,
        measured=(
            Measurement(f"{name} against the weights in use", f"{gap:.3g}", "must be 0"),
        ),
        hidden="every shape is right; the picture shows other weights than the model has",
    )


@relation("returned-index", "a returned index is that of the largest weight", cost=1)
def index(bench: Bench) -> Verdict | None:
    """Compare results of the role index with the argmax over the keys."""
    here = layout(bench)
    names = [r.name for r in bench.contract.returns if r.role == "index"]
    weights = here.alignment(bench.out) if names else None
    if weights is None and names:
        weights = _stacked(here, readings(bench))
    if weights is None:
        return None
    best = np.sort(weights.mean(1).argmax(-1), axis=None)
    for name in names:
        array = bench.out.get(name)
        if array is None or array.size != best.size:
            continue
        if not np.array_equal(np.sort(array, axis=None), best):
            return fails(
                "RG304",
                f"`{name}` is not the key of the largest weight",
                about=name,
                depends_on=("returns",),
                hidden="every shape is right and nothing raises",
            )
    return holds()


@relation("returned-context", "a returned context is the recomputed one", strict=True, cost=1)
def returned_context(bench: Bench) -> Verdict | None:
    """Where a result is the context itself, compare it."""
    here = layout(bench)
    for reading in readings(bench):
        answer = expected(bench, reading)
        if answer is None or answer.context is None:
            continue
        chain = view_chain(reading.site.context)
        for name, node in zip(bench.out.names, bench.trace.outputs, strict=False):
            if node is None or all(node.index != n.index for n in chain):
                continue
            result = here.context(bench.out, name)
            if result is None or result.shape[:2] != answer.context.shape[0::2]:
                continue
            if not agree(bench, result, merged(answer.context)):
                return fails("RG304", f"`{name}` is not the recomputed context", about=name)
            return holds()
    return None


def _stacked(here: Layout, found: list[Reading]) -> np.ndarray | None:
    """Weights of all sites in one array: as they are, or one site a decoder step."""
    fitting = [r for r in found if r.weights.shape[-1] == here.n_keys]
    if not fitting:
        return None
    if len(fitting) == 1:
        return fitting[0].weights
    if len(fitting) == here.n_queries and all(r.weights.shape[2] == 1 for r in fitting):
        return np.concatenate([r.weights for r in fitting], axis=2)
    return None
