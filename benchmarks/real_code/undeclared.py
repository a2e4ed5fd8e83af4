"""The check as a user first runs it, with nothing declared: ``--no-contract``.

A subject is asked with its text alone. Where no arguments can be made for it, the question
is put again with how to build it (sizes of the constructor, values that are no arrays) and
still without axes, masks, scores, results, or what they mean.
"""

from dataclasses import replace
from typing import Any

from real_code.subject import Subject

__all__ = ["ask_undeclared", "merged", "sampled", "section"]

_BUILDING = ("target", "init", "values", "sizes")
_UNABLE = ("RG901", "RG902", "RG903", "RG904")
_TITLES = {
    "true": "True: also said with a contract, or shown under Evidence",
    "design": "By design: what is said holds, and its authors mean it",
    "false": "False",
    "open": "Not settled",
}


def ask_undeclared(subject: Subject) -> dict[str, Any]:
    """Check one subject without its contract, and once more with how to build it."""
    from real_code.run import ask  # noqa: PLC0415 - heavy

    row = {**ask(replace(subject, contract=None)), "given": "nothing"}
    if not _is_unable(row):
        return row
    building = {k: v for k, v in (subject.contract or {}).items() if k in _BUILDING}
    if not set(building) - {"target"}:
        return row
    return {**ask(replace(subject, contract=building)), "given": "how to build it"}


def _is_unable(row: dict[str, Any]) -> bool:
    return any(f["code"] in _UNABLE for f in row.get("findings", ()))


def sampled(families: list[str], count: int) -> list[str]:
    """So many of the families, evenly taken.

    >>> sampled(["a", "b", "c", "d", "e"], 2)
    ['a', 'd']
    """
    if count >= len(families):
        return families
    return [families[-(-i * len(families) // count)] for i in range(count)]


def merged(before: dict[str, Any] | None, part: dict[str, Any]) -> dict[str, Any]:
    """Put answers in place of earlier ones on the same subjects."""
    rows = {row["name"]: row for row in (before or {}).get("rows", ())}
    for row in part["rows"]:
        rows[row["name"]] = row
    order = sorted(rows, key=lambda name: (name.split("/")[0], name))
    versions = {**(before or {}).get("versions", {}), **part["versions"]}
    return {
        "command": part["command"],
        "versions": dict(sorted(versions.items())),
        "rows": [_plain(rows[name]) for name in order],
    }


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k not in ("seconds", "family", "mode", "digest")}


def section(results: dict[str, Any]) -> str:
    """Write the section of the page."""
    from real_code.verdicts import judge  # noqa: PLC0415 - of this folder

    asked = [row for row in results["rows"] if "findings" in row]
    unable = [row for row in asked if _is_unable(row)]
    able = [row for row in asked if not _is_unable(row)]
    loud = [
        (row, found, judge(row["name"], found["code"], found["message"]))
        for row in able
        for found in row["findings"]
        if found["level"] != "note"
    ]
    counts = {v: sum(j[0] == v for _, _, j in loud) for v in _TITLES}
    notes = sum(f["level"] == "note" for row in able for f in row["findings"])
    built = sum(row.get("given") != "nothing" for row in able)
    lines = ["## With nothing declared", ""]
    lines.append(
        f"The same code asked as `regard check FILE:NAME` asks it, with no contract and no "
        f"flag (`{results['command']}`): {len(asked)} subjects, of transformers one class of "
        f"each family in a sample of them. {len(able)} could be given arguments, {built} of "
        f"these only when told how to build the class; {len(unable)} could not, which is exit "
        f"2 and no verdict. Errors and warnings on the others: {counts['true']} true, "
        f"{counts['design']} on what is meant to be so, {counts['false']} false, "
        f"{counts['open']} not settled; beside them {notes} notes. The check was mended on "
        "what it first said of this code that was false; a row is its answer when last asked."
    )
    lines += ["", "| library | asked | arguments made | true | by design | false | open |"]
    lines.append("|---|---|---|---|---|---|---|")
    for library in dict.fromkeys(row["library"] for row in asked):
        mine = [row for row in asked if row["library"] == library]
        made = sum(not _is_unable(row) for row in mine)
        cells = [
            str(sum(j[0] == v and row["library"] == library for row, _, j in loud))
            for v in _TITLES
        ]
        lines.append(f"| {library} | {len(mine)} | {made} | {' | '.join(cells)} |")
    for verdict, title in _TITLES.items():
        mine = [(row, found, j) for row, found, j in loud if j[0] == verdict]
        if mine:
            lines += ["", f"{title}.", ""]
        for row, found, (_, _, words) in mine:
            lines.append(f"* `{row['name']}` {found['code']}: {words or found['message']}.")
    if unable:
        names = ", ".join(f"`{row['name']}`" for row in unable)
        lines += ["", "<details><summary>No arguments could be made</summary>", ""]
        lines += [names, "", "</details>"]
    lost = [row["name"] for row in results["rows"] if "broken" in row]
    if lost:
        lines += ["", "No answer: " + ", ".join(f"`{name}`" for name in lost) + "."]
    return "\n".join(lines) + "\n"
