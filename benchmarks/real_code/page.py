"""The page of the results."""

from typing import Any

from real_code.classes import listed, unasked
from real_code.planted import section as slips
from real_code.undeclared import section

__all__ = ["page"]

_HEAD = """# The check on code that people use

{checked} classes and functions of {families} families, {relations} relations asked. A class of
transformers is built from a small configuration inside a wrapper that makes the masks and
positions it asks for; a class whose text is that of another, names aside, is asked once
({same} were not asked again). Everything else is called as its manual says. This page is
generated: `{command}`.

| library | version | checked | same text | not asked | errors and warnings |
|---|---|---|---|---|---|
{table}

Every error and warning was looked at by hand: {true} are true, {design} say what holds and is
meant to be so, {false} are false, {open} were not settled. Before the check was mended on this
code it had more false ones; what a mended check says of code that nobody looked at is another
question, which a fresh release of these libraries answers.
"""
_VERDICTS = {
    "true": (
        "True",
        "The code does something else than its text or its manual says, or its caller made a "
        "mistake that raises nothing.",
    ),
    "design": (
        "By design",
        "What is said holds, and the authors mean it. A contract that could say so would be "
        "silent; `# regard: ignore[CODE]` is, today.",
    ),
    "false": ("False", "What is said does not hold, or is told of the wrong thing."),
    "open": ("Not settled", ""),
}


def page(
    results: dict[str, Any],
    undeclared: dict[str, Any] | None = None,
    planted: dict[str, Any] | None = None,
) -> str:
    """Write the page: results with contracts, with nothing declared, with slips planted."""
    findings = results["findings"]
    counts = {v: sum(f["verdict"] == v for f in findings) for v in _VERDICTS}
    parts = [
        _HEAD.format(
            checked=len(results["checked"]),
            families=results["families"],
            relations=sum(c["relations"] for c in results["libraries"].values()),
            same=len(results["same"]),
            command=results["command"],
            table="\n".join(_rows(results)),
            **counts,
        )
    ]
    for verdict, (title, words) in _VERDICTS.items():
        mine = [f for f in findings if f["verdict"] == verdict]
        if not mine:
            continue
        parts.append(f"## {title}\n\n{words}\n" if words else f"## {title}\n")
        parts.append("\n".join(_told(mine)) + "\n")
    parts.append(_evidence(results["evidence"]))
    notes = sum(f["verdict"] == "note" for f in findings)
    parts.append(
        f"## Notes\n\nBeside these, {notes} notes: what only a declaration could decide, as "
        "whether queries share out the keys among them.\n"
    )
    if undeclared is not None:
        parts.append(section(undeclared))
    if planted is not None:
        parts.append(slips(planted["rows"]))
    parts.append(_skipped(results))
    if "transformers" in results["libraries"]:
        parts.append(listed(results, "transformers"))
    return "\n".join(parts)


def _rows(results: dict[str, Any]) -> list[str]:
    names = {"onmt": "OpenNMT-py", "allennlp_light": "allennlp-light"}
    names["x_transformers"] = "x-transformers"
    rows = []
    for library, count in results["libraries"].items():
        loud = sum(
            f["name"].startswith(f"{library}/") and f["verdict"] != "note"
            for f in results["findings"]
        )
        left = sum(n.startswith(f"{library}/") for n in unasked(results))
        version = results["versions"].get(names.get(library, library), "")
        rows.append(
            f"| {library} | {version} | {count['checked']} | {count['same text']} | "
            f"{left} | {loud} |"
        )
    return rows


def _told(findings: list[dict[str, Any]]) -> list[str]:
    grouped: dict[tuple[str, str], list[str]] = {}
    for found in findings:
        key = (found["why"] or found["message"], found["evidence"])
        grouped.setdefault(key, []).append(f"`{found['name']}` {found['code']}")
    lines = []
    for (words, evidence), names in grouped.items():
        shown = ", ".join(dict.fromkeys(names))
        mark = f" [{evidence}](#evidence)" if evidence else ""
        lines.append(f"* {shown}: {words}.{mark}")
    return lines


def _evidence(evidence: dict[str, Any]) -> str:
    lines = ["## Evidence", ""]
    lines.append("Measured without the check, by `benchmarks/real_code/evidence.py`.")
    lines += ["", "| | what | measured |", "|---|---|---|"]
    for name, each in evidence.items():
        figures = each.get("figures")
        said = (
            each.get("skipped")
            or each.get("failed")
            or "; ".join(f"{k}: {v:g}" for k, v in figures.items())
        )
        lines.append(f"| {name} | {each['what']} | {said} |")
    return "\n".join(lines) + "\n"


def _skipped(results: dict[str, Any]) -> str:
    lines = ["## Not asked", ""]
    asked = {name.split(" (")[0] for name in results["checked"]}
    left = {
        why: [n for n in names if n.split(" (")[0] not in asked]
        for why, names in results["skipped"].items()
    }
    for why, names in sorted(left.items(), key=lambda each: -len(each[1])):
        if not names:
            continue  # asked in another form
        lines.append(f"* {len(names)}: {why}, as `{names[0]}`.")
    lines += [f"* `{name}`: {why}." for name, why in results["broken"].items()]
    return "\n".join(lines) + "\n"
