"""Which places a failing relation points to, the likeliest first."""

from collections.abc import Callable

from regard.check.cause import crash, flow, masks, scores
from regard.check.cause.odd import oddities
from regard.check.cause.view import Suspect, View
from regard.check.relations.base import Verdict

__all__ = ["suspects"]

Finder = Callable[[Verdict, View], list[Suspect]]


def suspects(verdict: Verdict, view: View) -> list[Suspect]:
    """Return every place to look at, one a line, in the order of suspicion."""
    found: list[Suspect] = []
    if verdict.relation in ("runs", "loads"):
        found += _safely(crash.crash, verdict, view)
        found += [Suspect(view.text.whole(line)) for line in verdict.lines if line]
    elif verdict.relation == "heads-declared":
        found += _safely(flow.split, verdict, view)
        found += view.fallback(verdict)
    else:
        odd = [s for s in oddities(view) if verdict.rule in s.explains]
        found += [s for s in odd if s.kind != "unused"]
        found += _stage(view)
        if verdict.relation == "weights-recomputed" and verdict.rule in ("RG401", "RG304"):
            found += _safely(scores.recomputed, verdict, view)
        for finder in _FINDERS.get(verdict.rule, ()):
            found += _safely(finder, verdict, view)
        found += [Suspect(view.text.whole(line)) for line in verdict.lines if line]
        found += [s for s in odd if s.kind == "unused"]
        found += view.fallback(verdict)
    found.append(Suspect(view.text.definition(view.case.loaded.entry)))
    seen: dict[int, Suspect] = {}
    for one in found:
        seen.setdefault(one.span.line, one)
    return list(seen.values())


def _stage(view: View) -> list[Suspect]:
    """Where the weights are right and the context is not, the sum over values is to blame."""
    states = view.states
    right = states.get("weights-recomputed") == "holds"
    if right and states.get("context-recomputed") == "fails" and view.site is not None:
        steps = view.site.post_ops
        return [s for n in (*steps, view.site.contraction) for s in view.blame(n)][-1:]
    return []


def _safely(finder: Finder, verdict: Verdict, view: View) -> list[Suspect]:
    """A finder that stumbles over an unusual recording must not lose the finding."""
    try:
        return finder(verdict, view)
    except (IndexError, KeyError, ValueError, TypeError, AttributeError):
        return []


def _by_relation(verdict: Verdict, view: View) -> list[Suspect]:
    """Suspects of a departure from a declared form: which part is meant decides."""
    returned = {r.name: r.role for r in view.contract.returns}
    if returned.get(verdict.about):
        return scores.attentional(verdict, view)
    if verdict.about in view.contract.inputs and verdict.depends_on == ("layer",):
        return scores.layer(verdict, view)
    if "positions" in verdict.depends_on:
        return scores.positions(verdict, view)
    if verdict.about in view.contract.inputs:
        return scores.layer(verdict, view)
    return scores.query(verdict, view)


_MASKS: tuple[Finder, ...] = (masks.masks,)
_CAUSAL: tuple[Finder, ...] = (masks.causal,)
_SOFTMAX: tuple[Finder, ...] = (scores.softmax,)
_MIXED: tuple[Finder, ...] = (flow.mixed,)
_FINDERS: dict[str, tuple[Finder, ...]] = {
    **dict.fromkeys(("RG201", "RG202", "RG205", "RG207", "RG208"), _MASKS),
    **dict.fromkeys(("RG203", "RG204"), _CAUSAL),
    **dict.fromkeys(("RG301", "RG302", "RG303", "RG206"), _SOFTMAX),
    **dict.fromkeys(("RG103", "RG106", "RG401", "RG402", "RG404", "RG801", "RG802"), _MIXED),
    **dict.fromkeys(("RG403", "RG501", "RG502"), (scores.scale,)),
    **dict.fromkeys(("RG601", "RG602", "RG603", "RG702"), (masks.numerics,)),
    **dict.fromkeys(("RG701", "RG703", "RG704"), (flow.unread,)),
    "RG104": (flow.returned,),
    "RG304": (flow.returned,),
    "RG105": (flow.vanished, crash.crash),
    "RG305": (scores.query,),
    "RG503": (scores.step,),
    "RG504": (_by_relation,),
    "RG803": (flow.kept,),
}
