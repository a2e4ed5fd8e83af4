"""Which candidates are tried first: suspect lines, families that a failure speaks of, small."""

from collections.abc import Iterable, Mapping, Sequence

from regard.check.repair.candidate import Candidate

__all__ = ["HINTS", "ordered"]

# Families that usually mend what a rule reports; a rule's group where the rule itself has none.
HINTS: Mapping[str, tuple[str, ...]] = {
    "RG1": ("name", "axis", "transpose", "reshape", "layer-size", "missing-axis", "shape-of"),
    "RG105": ("missing-axis", "axis", "index"),
    "RG106": ("layout", "transpose", "axis"),
    "RG2": ("polarity", "mask-missing", "mask-late", "mask-source", "new-axis", "mask-form"),
    "RG203": ("triangle", "comparison", "shift", "offset", "option", "shape-of"),
    "RG204": ("triangle", "comparison", "shift", "offset", "number"),
    "RG206": ("mask-late", "nesting", "mask-form"),
    "RG3": ("axis", "missing-axis", "default", "function", "nesting"),
    "RG304": ("name", "index", "transpose", "dropout", "order"),
    "RG305": ("function", "name", "own-function"),
    "RG4": ("reshape", "transpose", "repeat", "axis", "order", "pattern"),
    "RG403": ("root", "operator", "scale", "name", "nesting"),
    "RG5": ("root", "operator", "scale", "function", "name", "nesting"),
    "RG504": (
        "own-function",
        "function",
        "name",
        "operator",
        "offset",
        "sign",
        "number",
        "axis",
    ),
    "RG503": ("name", "state", "order"),
    "RG6": ("fill", "row-maximum", "empty-row"),
    "RG7": ("gradient", "name", "own-function"),
    "RG8": ("reshape", "layout", "repeat", "missing-axis", "axis", "transpose"),
    "RG803": ("dropout", "cache-key", "in-place", "truth"),
}


def ordered(
    source: str,
    candidates: Sequence[Candidate],
    *,
    lines: Sequence[int] = (),
    ran: Iterable[int] = (),
    rules: Iterable[str] = (),
) -> list[tuple[float, Candidate]]:
    """Return candidates with their rank, the lowest first.

    Parameters
    ----------
    source : str
        The text that the candidates change.
    lines : sequence of int
        Suspect lines, the most suspect first.
    ran : iterable of int
        Lines that ran; a line that did not cannot be what the run showed.
    rules : iterable of str
        Codes of the failures.
    """
    hinted = {name for code in rules for name in (HINTS.get(code) or HINTS.get(code[:3], ()))}
    place = {line: index for index, line in reversed(list(enumerate(lines)))}
    executed = set(ran)
    starts = [0]
    for text in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))

    def line_of(offset: int) -> int:
        low, high = 0, len(starts) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if starts[middle] <= offset else (low, middle - 1)
        return low + 1

    ranked = []
    for each in candidates:
        where = [line_of(start) for start, _, _ in each.spans]
        rank = each.cost
        if lines:
            near = min(place.get(line, 99) for line in where)
            rank += 0.15 * near if near < 99 else 0.6
        if executed and not any(line in executed for line in where):
            rank += 2.5
        if each.kind in hinted:
            rank -= 0.5
        ranked.append((rank, each))
    return sorted(ranked, key=lambda pair: pair[0])
