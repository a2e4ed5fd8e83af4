"""Findings: rule, message in named axes, place, evidence, what hid it, how to mend it."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from regard.check.cause.crash import culprit, meeting
from regard.check.cause.grouping import Group, groups, guessed, is_symptom
from regard.check.cause.hidden import coincidence
from regard.check.cause.scores import features
from regard.check.cause.view import Suspect, View
from regard.check.finding import Evidence, Finding, Fix, Level, Location, Step, Tensor
from regard.check.relations.base import Case, Results, Verdict
from regard.check.rules import find
from regard.check.trace.records import Span

__all__ = ["causes"]

# Oddities that say what is wrong better than the relation that failed.
_TELLING = frozenset(
    {
        "regrouped",
        "tiled",
        "summed-axis",
        "twice",
        "diagonal",
        "dropout",
        "early-dropout",
        "late",
    }
    | {"pattern", "misplaced", "unsorted", "squeezed", "softmax-axis", "cache", "alone"}
    | {"stale", "stretched", "bypassed", "narrow", "idle", "logged"}
    | {"inverse", "misnamed"}
)
_LEVELS: tuple[Level, ...] = ("error", "warning", "note")


def causes(case: Case, results: Results, found: Any = None) -> list[Finding]:
    """Turn failing relations into findings.

    Parameters
    ----------
    case : Case
        The code and its contract.
    results : Results
        What :func:`regard.check.relations.base.ask` showed of it.
    found : Search, optional
        What the search for repairs brought: ``fixes`` and ``survivors``.

    Returns
    -------
    findings : list of Finding
        The worst first. One a cause; failures that one repair mends have one cause.
    """
    failed = results.failed
    if not failed:
        return []
    view = View(case)
    for verdict in results.verdicts:
        if view.states.get(verdict.relation) != "fails":
            view.states[verdict.relation] = verdict.state
    fixes: tuple[Fix, ...] = tuple(found.fixes) if found is not None else ()
    findings: list[Finding] = []
    for group in groups(failed, view, one_cause=bool(fixes)):
        its = fixes if not findings else ()
        findings.append(_finding(group, view, results, its))
    return sorted(findings, key=lambda f: _LEVELS.index(f.level))


def _finding(group: Group, view: View, results: Results, fixes: tuple[Fix, ...]) -> Finding:
    verdict = group.verdict
    place, fixes = _place(group.places, fixes)
    hidden = _hidden(verdict, view)
    code = _code(verdict, place, view, narrow="float32" in hidden)
    loaded = view.case.loaded
    level, depends = _level(group, view)
    if level == "error" and verdict.relation == "runs" and _is_convention(hidden, view):
        level = "warning"
    message = _message(verdict, place, view)
    tensor = _tensor(verdict, place, view)
    stem = os.path.splitext(os.path.basename(loaded.path))[0]
    subject = tensor.name if tensor is not None else verdict.about
    return Finding(
        code=code,
        name=find(code).name,
        level=level,
        target=f"{loaded.path}:{loaded.entry}",
        message=message,
        location=_location(place.span, loaded.path),
        evidence=_evidence(group, view, results),
        tensor=tensor,
        trace=_steps(place, view),
        hidden=hidden,
        also=_also(group, message, results),
        depends_on=depends,
        fixes=fixes,
        fingerprint=f"{code}:{stem}.{loaded.entry}:{subject}",
    )


def _place(
    places: Sequence[Suspect], fixes: tuple[Fix, ...]
) -> tuple[Suspect, tuple[Fix, ...]]:
    """The line of a proven repair; without one, the likeliest suspect."""
    if not fixes:
        return places[0], fixes
    proven = [f for f in fixes if f.status == "proven"]
    if not proven:
        # Several repairs: the one at the most suspect line comes first.
        order = {p.span.line: i for i, p in enumerate(places)}
        fixes = tuple(
            sorted(
                fixes, key=lambda f: min((order.get(e.line, 99) for e in f.edits), default=99)
            )
        )
    else:
        fixes = (*proven, *(f for f in fixes if f.status != "proven"))
    edits = fixes[0].edits
    if not edits:
        return places[0], fixes
    lines = [e.line for e in edits]
    for one in places:
        if one.span.line in lines:
            return one, fixes
    edit = edits[0]
    span = Span(edit.line, edit.column, edit.end_line, max(edit.end_column, edit.column + 1))
    # What an earlier call left is used at one line and kept at another, where it is mended.
    stale = next((p for p in places if p.kind == "stale"), None)
    if stale is not None:
        return replace(stale, span=span), fixes
    near = places[0] if places else Suspect(span)
    return replace(near, span=span, what="", kind="", rule=""), fixes


def _code(verdict: Verdict, place: Suspect, view: View, *, narrow: bool) -> str:
    if verdict.relation == "runs" and narrow:
        return "RG601"
    if verdict.rule == "RG205":
        return "RG205"  # whatever else is wrong at its place
    if verdict.relation == "score-scale" and _is_other_score(view):
        return "RG504"
    if place.kind == "pattern" and verdict.rule == "RG201":
        return "RG202"  # neither the mask nor its reverse
    return place.rule or verdict.rule or "RG101"


def _is_other_score(view: View) -> bool:
    """Whether an undivided product is declared, and the scaled one is computed."""
    site = view.site
    if view.contract.score not in ("dot", "general") or site is None or site.query is None:
        return False
    size = features(site)
    return bool(site.slope and size and abs(site.slope * size**0.5 - 1.0) < 1e-2)


def _level(group: Group, view: View) -> tuple[Level, str]:
    """The worst level that stands on what was declared; a guess makes a note."""
    stated = [v for v in group.verdicts if not guessed(v, view)]
    # What many bugs break says that there is one, not how bad it is.
    telling = [v.level for v in stated if not is_symptom(v)] or [v.level for v in stated]
    if telling:
        return min(telling, key=_LEVELS.index), ""
    return "note", guessed(group.verdict, view)


def _is_convention(hidden: str, view: View) -> bool:
    """Whether guessed code runs as soon as its width is that of all heads, as it mostly is."""
    by_chance = hidden.startswith("runs when d_") and hidden.endswith("= heads*d_head")
    return by_chance and bool(view.contract.guessed)


def _message(verdict: Verdict, place: Suspect, view: View) -> str:
    if verdict.relation == "runs":
        failed = view.trace.failed
        said = place.what or (meeting(failed, view.trace) if failed is not None else "")
        if "overflow" in verdict.quote and failed is not None:
            return f"the number that {failed.op} puts in does not fit {view.contract.dtype}"
        return said or verdict.message
    telling = place.kind in _TELLING and bool(place.what) and verdict.rule != "RG205"
    if place.kind == "softmax-axis" and verdict.rule in ("RG301", "RG303"):
        telling = verdict.rule == "RG303"
    return place.what if telling else verdict.message


def _tensor(verdict: Verdict, place: Suspect, view: View) -> Tensor | None:
    node, expected = place.node or view.named(verdict.about), place.expected
    failed = view.trace.failed
    if failed is not None and verdict.relation == "runs" and node in (failed, None):
        node, expected = culprit(failed)
    if node is None:
        return None
    output = view.output(verdict.about)
    name = node.name or (verdict.about if node is output else node.op)
    return Tensor(name, node.axes, node.shape, expected)


def _steps(place: Suspect, view: View) -> tuple[Step, ...]:
    """Named tensors around the place, in the order in which they were made."""
    steps: dict[tuple[int, str], Step] = {}
    for node in view.trace.nodes:
        if node.span is not None and node.name and not node.arguments.get("inside"):
            steps.setdefault(
                (node.span.line, node.name), Step(node.span.line, node.name, node.axes)
            )
    nearest = sorted(steps.values(), key=lambda s: abs(s.line - place.span.line))[:12]
    return tuple(s for s in steps.values() if s in nearest)


def _evidence(group: Group, view: View, results: Results) -> Evidence:
    verdict = group.verdict
    return Evidence(
        relation=verdict.relation,
        equation=verdict.equation,
        # The first numbers that were taken, if not by the telling relation then by another.
        measured=next((v.measured for v in group.verdicts if v.measured), ()),
        sizes=verdict.sizes,
        seed=view.case.seed,
        relations_failed=len({v.relation for v in group.verdicts}),
        relations_run=len(results.names),
        quote=verdict.quote,
    )


def _hidden(verdict: Verdict, view: View) -> str:
    if verdict.relation == "runs":
        failed = view.trace.failed
        axes = tuple({a for n in failed.inputs for a in n.axes}) if failed is not None else ()
        return coincidence(view, axes)
    return verdict.hidden


def _also(group: Group, message: str, results: Results) -> str:
    count = len({v.relation for v in group.verdicts})
    said = [group.verdict.message] if group.verdict.message != message else []
    if group.verdict.relation == "runs":
        said = []
    if count > 1:
        said.append(f"{count} of {len(results.names)} relations fail, all from this line")
    return "; ".join(said)


def _location(span: Span, path: str) -> Location:
    return Location(path, span.line, span.column, span.end_line or span.line, span.end_column)
