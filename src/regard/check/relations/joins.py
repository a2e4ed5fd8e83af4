"""Habits that a repair keeps: the order of joined parts, sums of residuals and positions."""

from typing import Any

from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.layout import layout
from regard.check.subject import Crash

__all__ = ["added", "groups", "joined_in_order"]


@relation(
    "joined-in-order", "parts are joined in the order of the arguments", strict=True, cost=1
)
def joined_in_order(bench: Bench) -> Verdict | None:
    """Compare the parts of each concatenation with the order of the arguments."""
    trace = bench.trace
    if trace is None or isinstance(trace, Crash):
        return None
    rank = {f"input:{n}": i for i, n in enumerate(bench.contract.inputs)}
    content = {f"input:{n}" for n in layout(bench).content}
    weights = {s.weights.index for s in trace.sites}
    asked = False
    here = layout(bench)
    timed = {"T_mem", *here.keys, *here.queries}
    for node in trace.nodes:
        if node.op != "cat" or len(node.inputs) != 2:
            continue
        dim = node.arguments.get("dim", 0)
        if isinstance(dim, int) and node.axes and set(node.axes[dim].split("+")) & timed:
            continue  # steps, cached and new
        made = [bool(trace.above(i) & weights) for i in node.inputs]
        if made[0] != made[1]:
            continue
        one, two = (set(i.sources) & content for i in node.inputs)
        asked = True
        if not one - two or not two - one:
            # The same argument twice: pieces of one tensor, as a rotation joins them.
            continue
        if min(rank[s] for s in one - two) > min(rank[s] for s in two - one):
            return fails("RG504", "parts are joined in another order than they are given in")
    return holds() if asked else None


@relation("added", "residuals and positions are added", strict=True, cost=1)
def added(bench: Bench) -> Verdict | None:
    """Look for arguments less their context, and for words times positions."""
    trace = bench.trace
    if trace is None or isinstance(trace, Crash) or not trace.sites:
        return None
    weights = {s.weights.index for s in trace.sites}
    live = trace.live()
    for node in trace.nodes:
        if (
            node.op not in ("sub", "mul", "div")
            or len(node.inputs) != 2
            or node.index not in live
        ):
            continue
        if any(n.op in ("const", "buffer") for n in node.inputs):
            continue
        one, two = node.inputs
        above = [bool(trace.above(n) & weights) for n in node.inputs]
        is_plain = [_is_argument(n) for n in node.inputs]
        meets = (above[0] and is_plain[1] and not above[1]) or (above[1] and is_plain[0])
        if meets and one.shape == two.shape and not _is_weighing(trace, node):
            return fails("RG504", "an argument and its context are not added")
        if bench.contract.positions == "absolute" and not any(above):
            tables = [{s for s in n.sources if s.startswith("param:")} for n in node.inputs]
            if tables[0] and tables[1] and not tables[0] & tables[1]:
                return fails("RG504", "words and positions are not added")
    return holds()


@relation(
    "groups-of-heads",
    "neighbouring query heads share a key head, at any ratio",
    strict=True,
    cost=3,
    everywhere=False,
)
def groups(bench: Bench) -> Verdict | None:
    """Where the number of groups is that of key heads, ask again with three a group."""
    c = bench.contract
    if "kv_heads" not in c.every_axis or "heads" not in c.every_axis:
        return None
    if bench.sizes["heads"] != bench.sizes["kv_heads"] ** 2:
        return None
    from regard.check.relations.recomputed import contexts, weights  # noqa: PLC0415

    other = bench.case.bench(bench.sizes.which, heads=bench.sizes["kv_heads"] * 3)
    if isinstance(other.base, Crash):
        return fails("RG401", "other numbers of heads raise", quote=other.base.message)
    for ask in (weights, contexts):
        verdict = ask(other)
        if verdict is not None and verdict.state == "fails":
            return verdict
    return holds()


def _is_argument(node: Any) -> bool:
    for _ in range(12):
        if node.op == "input":
            return bool(node.dtype.startswith(("float", "bfloat")))
        if node.op not in ("view", "reshape", "transpose", "permute", "to", "contiguous"):
            return False
        node = node.inputs[0]
    return False


def _is_weighing(trace: Any, node: Any) -> bool:
    return any(node is s.contraction or node in s.post_ops for s in trace.sites)
