"""What let a bug run: the sizes at which the code does not crash."""

import itertools

from regard.check.cause.view import View
from regard.check.relations.base import Case
from regard.check.sizes import names_in
from regard.check.subject import Outcome

__all__ = ["coincidence"]


def coincidence(view: View, clash: tuple[str, ...] = ()) -> str:
    """Say at which coincidence of sizes a crashing code runs; empty where none was found.

    Parameters
    ----------
    view : View
        The case, which crashes at sizes that all differ.
    clash : tuple of str
        Axes that did not meet, tried first.
    """
    contract = view.contract
    if contract.dtype in ("float16", "bfloat16"):
        wide = Case(view.case.loaded, contract.with_(dtype="float32"), seed=view.case.seed)
        if isinstance(wide.bench(0).base, Outcome):
            return "with float32 this line runs"
    sizes = view.bench.sizes
    axes = [a for a in contract.every_axis if a not in contract.sizes]
    times = [a for a in axes if a.startswith("T")]
    features = [a for a in axes if a.startswith("d_")]
    pairs = [(a, b) for a, b in itertools.combinations(times, 2)]
    pairs += list(itertools.combinations(features, 2))
    if {"heads", "d_head"} <= {n for t in contract.every_axis for n in names_in(t)} | set(axes):
        pairs += [(a, "heads*d_head") for a in features if a not in ("d_head", "d_model")]
    elif "d_model" in axes:
        pairs += [(a, "d_model") for a in features if a != "d_model"]
    wanted = set(clash)
    pairs.sort(key=lambda p: -len(wanted & set(p)))
    for name, other in pairs[:14]:
        bench = view.case.bench(0, **{name: int(sizes.value(other))})
        if isinstance(bench.base, Outcome):
            return f"runs when {name} = {other}"
    for name in ("batch", "kv_heads", *times, "layers"):
        if name in axes or name in contract.sizes:
            bench = view.case.bench(0, **{name: 1})
            if isinstance(bench.base, Outcome):
                return f"runs when {name} = 1"
    return ""
