"""Weights, contexts and results against the oracle's, stage by stage."""

from dataclasses import replace
from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.oracle import (
    Answer,
    allowed_here,
    declared_scale,
    expected,
    softmax,
    unmasked,
)
from regard.check.relations.base import Bench, Verdict, fails, holds, near, relation
from regard.check.relations.layout import Layout, layout
from regard.check.relations.operands import BENDS
from regard.check.relations.reading import (
    VIEWS,
    Reading,
    flat,
    merged,
    readings,
    spread,
    used_weights,
    weighing,
)
from regard.check.relations.used import is_mixed

__all__ = ["agree", "contexts", "given", "merges", "view_chain", "weights"]

_VIEWS = VIEWS | {"dropout"}
_CHOICES = frozenset({"sign", "one_hot", "argmax", "topk", "scatter", "scatter_"})


@relation("weights-recomputed", "weights = softmax(declared score), in float64", cost=1)
def weights(bench: Bench) -> Verdict | None:
    """Recompute the weights of every site."""
    if bench.contract.sparse:
        return None  # whom a softmax leaves out is not known
    asked = False
    for used, other in _both(bench):
        changed = bench.contract.reweighted or is_mixed(bench, used)
        plain = _as_made(bench, used) if changed else used
        answer = expected(bench, plain)
        if answer is None:
            continue
        asked = True
        plain = _but_for_padding(bench, plain, answer)
        everywhere = np.ones(answer.scores.shape, dtype=bool)
        late = bench.contract.reweighted and softmax(answer.scores, everywhere)
        if late is not False and agree(bench, plain.weights, late):
            continue  # a mask may come with what changes the weights
        if _agrees(bench, plain, answer):
            continue
        turned = expected(bench, other) if other is not None else None
        if turned is not None and _agrees(bench, plain, turned):
            continue  # heads of neighbouring features: legitimate, and asked of repairs below
        if bench.contract.score in (None, "none") and _chosen(bench, plain):
            continue
        return _wrong_weights(bench, plain, answer)
    return holds() if asked else None


@relation("given-scores", "weights = softmax(the scores that are given)", cost=1)
def given(bench: Bench) -> Verdict | None:
    """Where the scores are an argument, recompute the returned weights from them."""
    here = layout(bench)
    name = bench.contract.weights
    returned = here.alignment(bench.out)
    if bench.contract.score != "none" or name is None or returned is None:
        return None
    same = [n for n in here.content if bench.contract.axes(n) == bench.contract.out_axes(name)]
    if len(same) != 1 or len(here.content) != 1:
        return None
    raw = bench.probe.args[same[0]]
    scores = here.alignment(replace(bench.out, outputs=(raw,), names=(name,)))
    if scores is None:
        return None
    wanted = softmax(scores, here.allowed()[:, None])
    if agree(bench, returned, wanted):
        return holds()
    gap = float(np.nan_to_num(np.abs(returned - wanted), nan=np.inf).max())
    return fails(
        "RG303",
        f"`{name}` is not the softmax of `{same[0]}` over the keys that may be attended to",
        about=name,
        measured=(Measurement("weights against the recomputed", f"{gap:.3g}", "must be 0"),),
        depends_on=("score", "causal", "window", *_kinds(here)),
        hidden="every shape is right and nothing raises",
    )


@relation("context-recomputed", "context = sum over the keys of weights * value", cost=1)
def contexts(bench: Bench) -> Verdict | None:
    """Recompute the context of every site from the weights that the code used."""
    asked = False
    for plain, other in _both(bench):
        found = _own_context(plain)
        if found is None:
            continue
        asked = True
        if agree(bench, *found):
            continue
        turned = _own_context(other) if other is not None else None
        if turned is not None and agree(bench, *turned):
            continue
        met = _as_met(bench, plain)
        if met is not None and agree(bench, *met):
            continue  # which heads share values is not declared, and is the code's own choice
        line = plain.site.context.line
        gap = float(np.abs(found[0] - found[1]).max())
        return fails(
            "RG401" if plain.heads > 1 else "RG304",
            "the context is not the sum over the keys of weights times values",
            about=plain.site.context.name,
            lines=(line,),
            measured=(
                Measurement("context against weights @ value", f"{gap:.3g}", "must be 0"),
            ),
            hidden="every shape is right and nothing raises",
        )
    return holds() if asked else None


@relation("heads-merged", "heads are merged as they were split", cost=1)
def merges(bench: Bench) -> Verdict | None:
    """Follow the context through views and compare with the merged heads."""
    here = layout(bench)
    asked = False
    for plain, other in _both(bench):
        verdict = _merge(here, plain)
        if verdict is None:
            continue
        asked = True
        if verdict.state == "fails" and other is not None:
            again = _merge(here, other)
            if again is not None and again.state == "holds":
                continue
        if verdict.state == "fails":
            return verdict
    return holds() if asked else None


@relation(
    "heads-in-order",
    "head h reads and writes features h*d_head to (h+1)*d_head",
    strict=True,
    cost=1,
)
def heads_in_order(bench: Bench) -> Verdict | None:
    """As above, without the other order."""
    here = layout(bench)
    asked = False
    for plain in readings(bench):
        if plain.heads == 1:
            continue
        asked = True
        answer, own = expected(bench, plain), _own_context(plain)
        merge = _merge(here, plain)
        if (
            (answer is not None and not agree(bench, plain.weights, answer.weights))
            or (own is not None and not agree(bench, *own))
            or (merge is not None and merge.state == "fails")
        ):
            return fails("RG402", "heads are read or written in another order than by blocks")
    return holds() if asked else None


def _both(bench: Bench) -> list[tuple[Reading, Reading | None]]:
    plain = readings(bench)
    if all(r.heads == 1 for r in plain):
        return [(r, None) for r in plain]
    other = readings(bench, interleaved=True)
    return [(r, next((o for o in other if o.site is r.site), None)) for r in plain]


def _agrees(bench: Bench, reading: Reading, answer: Answer) -> bool:
    """Whether weights are the recomputed ones in every row that has a key to attend to."""
    allowed = allowed_here(layout(bench), reading)
    if allowed is None or bench.contract.all_masked is not None:
        return agree(bench, reading.weights, answer.weights)
    has_keys = np.asarray(allowed.any(-1))[:, None, :, None]
    return agree(bench, *(np.where(has_keys, w.weights, 0.0) for w in (reading, answer)))


def _as_made(bench: Bench, reading: Reading) -> Reading:
    """A reading with the weights that the softmax gave, whatever became of them."""
    own = weighing(layout(bench), reading.site.weights, reading.site.axis)
    return reading if own is None else replace(reading, weights=own)


def _but_for_padding(bench: Bench, reading: Reading, answer: Answer) -> Reading:
    """A reading whose rows of positions that are padding themselves are as they should be."""
    here = layout(bench)
    unread = ~np.asarray(here.allowed().any(axis=1))
    shape = reading.weights.shape
    if not here.is_self or shape != answer.weights.shape or unread.shape != shape[::2]:
        return reading
    rows = unread[:, None, :, None]
    return replace(reading, weights=np.where(rows, answer.weights, reading.weights))


def _own_context(reading: Reading | None) -> tuple[np.ndarray, np.ndarray] | None:
    """The code's context and the sum of its values under its own weights."""
    if reading is None or reading.value is None or reading.context is None:
        return None
    value, w = reading.value, reading.weights if reading.met is None else reading.met
    if value.shape[2] != w.shape[-1] or value.shape[1] not in (1, w.shape[1]):
        return None
    found = w @ value
    if found.shape != reading.context.shape:
        return None
    return reading.context, found


def _as_met(bench: Bench, reading: Reading) -> tuple[np.ndarray, np.ndarray] | None:
    """As above with the values as the weights meet them, heads repeated by the code itself."""
    here = layout(bench)
    if "kv_heads" in bench.contract.every_axis or reading.site.value is None:
        return None
    value = spread(here, reading.site.value, here.keys, reading.heads)
    return _own_context(replace(reading, value=value))


def _merge(here: Layout, reading: Reading) -> Verdict | None:
    """Whether the last view of the context holds the heads side by side."""
    if reading.heads == 1 or reading.context is None:
        return None
    chain = view_chain(reading.site.context)
    last = next((n for n in reversed(chain) if n is not reading.site.context), None)
    own = _own_context(reading)
    if last is None or own is None:
        return None
    b, h, n, d = own[1].shape
    widths = {int(s) for s in last.shape}
    if h * d not in widths:
        return None
    whole = flat(here, last, here.queries)
    if whole is None or whole.shape != (b, n, h * d):
        return None
    if agree(here.bench, whole, merged(own[1], reading.interleaved)):
        return holds()
    return fails(
        "RG402",
        "heads are merged in another order than they were split",
        about=last.name,
        lines=tuple(dict.fromkeys(m.line for m in reversed(chain) if m.line)),
        hidden="every shape is right and nothing raises",
    )


def view_chain(node: Any) -> list[Any]:
    """A node and its views, as long as there is one use."""
    chain = [node]
    for _ in range(12):
        uses = [u for u in chain[-1].uses if u.op in _VIEWS and u.inputs[0] is chain[-1]]
        if len(uses) != 1:
            break
        chain.append(uses[0])
    return chain


def _chosen(bench: Bench, reading: Reading) -> bool:
    """Whether weights are picked or signed after the softmax, as no slip of the pen does."""
    trace = bench.trace
    onward = trace.above(used_weights(reading.site)) - trace.above(reading.site.weights)
    return any(n.op in _CHOICES for n in trace.nodes if n.index in onward)


def _wrong_weights(bench: Bench, reading: Reading, answer: Answer) -> Verdict:
    here = layout(bench)
    gap = float(np.nan_to_num(np.abs(reading.weights - answer.weights), nan=np.inf).max())
    code, text, is_practice = _stage(bench, here, reading)
    return fails(
        code,
        text,
        level="warning" if is_practice else "error",
        about=reading.site.weights.name,
        lines=tuple(dict.fromkeys((reading.site.span.line, reading.site.scores.line))),
        measured=(Measurement("weights against the recomputed", f"{gap:.3g}", "must be 0"),),
        depends_on=("score", "scale", "causal", "window", "positions", *_kinds(here)),
        hidden="every shape is right and nothing raises",
    )


def _stage(  # noqa: PLR0911 - one line a stage
    bench: Bench, here: Layout, reading: Reading
) -> tuple[str, str, bool]:
    """The first stage that differs: the rule, what is wrong, and whether it is practice."""
    allowed, own = allowed_here(here, reading), unmasked(here, reading)
    everywhere = np.ones(reading.weights.shape, dtype=bool)
    if allowed is None or own is None:
        return "RG204", "a key that may be read is masked", False
    if not agree(bench, softmax(own, allowed[:, None]), reading.weights):
        raw = np.broadcast_to(reading.scores, reading.weights.shape)
        if np.isnan(raw).any() or not agree(bench, softmax(raw, everywhere), reading.weights):
            return "RG303", "the weights are no softmax of the scores over the keys", False
        code = "RG203" if here.contract.causal else "RG202"
        return code, "keys that may not be read have weight", False
    slope, wanted = reading.site.slope, None
    if reading.key is not None:
        wanted = declared_scale(bench, reading.key.shape[-1])
    if slope is not None and wanted is not None and abs(slope / wanted - 1.0) > 0.02:
        return "RG504", "the scores have another scale than the declared one", True
    bent = next((n for n in reading.site.pre_ops if n.op in BENDS), None)
    if bent is not None:
        return "RG504", f"{bent.op} bends the scores; the declared one is a product", True
    if bench.contract.positions == "alibi":
        return "RG504", "the position bias is not slope times distance", False
    if reading.heads > 1:
        return "RG401", "heads are split across positions or shared in another order", False
    return "RG504", "the weights are not those of the declared score", False


def _kinds(here: Layout) -> tuple[str, ...]:
    return tuple(f"kinds.{n}" for n in here.key_masks())


def agree(bench: Bench, a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays are one but for rounding, as coarse as the declared precision is."""
    half = bench.contract.dtype in ("float16", "bfloat16")
    if a.shape != b.shape:
        return False
    return near(a, b, 2e-2 if half else 1e-4)
