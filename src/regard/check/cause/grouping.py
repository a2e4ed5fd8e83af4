"""Many failing relations, few causes: which failures belong together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from regard.check.cause.places import suspects
from regard.check.cause.view import Suspect, View
from regard.check.relations.base import Verdict, is_note

__all__ = ["Group", "groups"]

_RANK = (
    *("RG101", "RG801", "RG201", "RG302", "RG206", "RG301", "RG303", "RG601"),
    *("RG104", "RG105"),
    *("RG404", "RG402", "RG401", "RG802", "RG106", "RG102", "RG207", "RG208", "RG204"),
    *("RG203", "RG202", "RG304", "RG403", "RG501", "RG502", "RG503", "RG305", "RG504"),
    # Infinities and NaN follow from much else: they name a cause only where nothing else does.
    *("RG602", "RG702"),
    *("RG103", "RG803", "RG603", "RG701", "RG703", "RG704", "RG205"),
)
# Relations that many different bugs break: they name a cause only where nothing else does.
_SYMPTOMS = frozenset(
    {"repeated-keys", "inputs-matter", "parameters-matter", "queries-apart", "example-alone"}
    | {"weights-recomputed", "context-recomputed", "heads-merged", "given-scores", "formula"}
    | {"gradient-is-derivative"}
)
_TELLING = frozenset({"eval-repeatable", "declared-layer"})  # nothing else breaks these

_EVERY = frozenset(_RANK)
_MASKS = frozenset({f"RG20{i}" for i in range(1, 9)})
_EXPLAINS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("RG101", "RG102", "RG601", "RG602"), _EVERY),
    **dict.fromkeys(("RG301", "RG302", "RG303", "RG206"), _EVERY - {"RG503", "RG504"}),
    "RG104": frozenset(
        {"RG105", "RG304", "RG504", "RG701", "RG305", "RG303", "RG202", "RG103"}
    ),
    **dict.fromkeys(
        ("RG401", "RG402", "RG404", "RG801", "RG802", "RG103", "RG106"),
        _EVERY - {"RG503", "RG501", "RG502", "RG601"},
    ),
    **dict.fromkeys(
        _MASKS - {"RG206", "RG205"},
        _MASKS
        | {"RG305", "RG701", "RG802", "RG801", "RG303", "RG103", "RG703"}
        | {"RG601", "RG602", "RG702", "RG102", "RG401"},
    ),
    **dict.fromkeys(
        ("RG304", "RG305", "RG504"),
        frozenset({"RG701", "RG304", "RG305", "RG303", "RG504", "RG104", "RG105"}),
    ),
    "RG803": _EVERY,
    "RG503": frozenset({"RG504"}),
    "RG701": frozenset({"RG305", "RG304", "RG504", "RG703", "RG803"}),
}


@dataclass
class Group:
    """Failures of one cause; the first verdict speaks for them."""

    verdicts: list[Verdict]
    places: list[Suspect]

    @property
    def verdict(self) -> Verdict:
        """The failure that says most about the cause."""
        return self.verdicts[0]


def groups(failed: Sequence[Verdict], view: View, *, one_cause: bool) -> list[Group]:
    """Group failures.

    Parameters
    ----------
    failed : sequence of Verdict
        Failing relations; of one that failed at several sizes the first is kept.
    view : View
        The case.
    one_cause : bool
        A single repair mends them all, so that they have one cause whatever they are.
    """
    unique = {(v.relation, v.rule, v.about): v for v in reversed(failed)}
    rest = sorted(unique.values(), key=lambda v: _order(v, view))
    found: list[Group] = []
    while rest:
        first, *others = rest
        places = suspects(first, view)
        explained = _EXPLAINS.get(first.rule, frozenset()) | {first.rule}
        if _is_unread(first, view):
            explained = _EVERY
        if places:
            explained |= places[0].explains
        if one_cause:
            worse = [v for v in others if not is_note(v, view.contract)]
            mine = [v for v in others if v in worse or v.rule in explained]
        else:
            mine = [v for v in others if v.rule in explained or is_symptom(v)]
            mine = [v for v in mine if _may_join(first, v)]
        found.append(Group([first, *mine], places))
        rest = [v for v in others if v not in mine]
    return found


def _may_join(first: Verdict, other: Verdict) -> bool:
    """A note never hides a failure that is more than a note."""
    return first.level != "note" or other.level == "note"


def guessed(verdict: Verdict, view: View) -> str:
    """How the fields that a failure stands on were guessed; empty where they were stated."""
    texts = view.contract.guessed
    return "; ".join(dict.fromkeys(texts[d] for d in verdict.depends_on if d in texts))


def is_symptom(verdict: Verdict) -> bool:
    """Whether many different bugs break this relation."""
    if verdict.relation == "weights-follow-pattern":
        return verdict.rule == "RG305"  # which keys are read is telling, that one is not is not
    return verdict.relation in _SYMPTOMS or verdict.relation.endswith("-recomputed")


def _is_unread(verdict: Verdict, view: View) -> bool:
    """Whether an argument that changes no result is on no way to one, so that all else follows.

    An argument that is read and cancels out, or is read by halves, is a symptom like others.
    """
    if verdict.relation != "inputs-matter" or verdict.about not in view.trace.inputs:
        return False
    axes = view.contract.inputs.get(verdict.about, "").split()
    reached = {s for o in view.trace.outputs if o is not None for s in o.sources}
    is_keys = view.contract.key_axis in axes and not view.contract.kinds.get(verdict.about)
    return is_keys and bool(reached) and f"input:{verdict.about}" not in reached


def _order(verdict: Verdict, view: View) -> tuple[int, int, int, int, int]:
    level = ("error", "warning", "note").index(verdict.level)
    stands = int(bool(guessed(verdict, view)))
    rank = _RANK.index(verdict.rule) if verdict.rule in _RANK else len(_RANK)
    telling = 0 if verdict.relation in _TELLING or _is_unread(verdict, view) else 1
    note = int(verdict.level == "note")
    symptom = is_symptom(verdict) and not _is_unread(verdict, view)
    return stands + note, telling, int(symptom), level, rank
