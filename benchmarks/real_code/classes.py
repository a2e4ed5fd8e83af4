"""Every class of a library and what came of it; results of a library among those of others."""

from typing import Any

from real_code.parts import PART

__all__ = ["joined", "listed", "spliced", "statuses", "unasked"]

# What came of a class, the most telling first; each with the words of the page.
_STATUSES = {
    "true": "a true finding",
    "design": "a finding of what is meant so",
    "false": "a false finding",
    "open": "a finding that is not settled",
    "note": "a note",
    "clean": "clean",
    "same": "same text as another class, names aside",
    "lost": "lost: no answer in time",
}
_TABLES = ("same", "broken", "errors", "versions", "evidence", "libraries")


def statuses(results: dict[str, Any], library: str) -> dict[str, list[str]]:
    """Return what came of each class of a library: its status -> names of classes.

    A class that is asked in several forms (self-attention, cross-attention) counts once, by
    the most telling; why it could not be asked counts where no form was.
    """
    of: dict[str, list[str]] = {}
    for name in results["checked"]:
        of.setdefault(_plain(name), []).append("clean")
    for found in results["findings"]:
        of.setdefault(_plain(found["name"]), []).append(found["verdict"])
    for status, names in (("same", results["same"]), ("lost", results["broken"])):
        for name in names:
            of.setdefault(_plain(name), []).append(status)
    for why, names in results["skipped"].items():
        for name in names:
            of.setdefault(_plain(name), []).append(why)
    order = list(_STATUSES)
    found: dict[str, list[str]] = {status: [] for status in order}
    for name, each in of.items():
        if name.startswith(f"{library}/"):
            best = min(each, key=lambda s: order.index(s) if s in order else len(order))
            found.setdefault(best, []).append(name.removeprefix(f"{library}/"))
    return {status: sorted(names) for status, names in found.items() if names}


def listed(results: dict[str, Any], library: str) -> str:
    """Write a section with every class of a library."""
    found = statuses(results, library)
    count = sum(len(names) for names in found.values())
    lines = [f"## Every class of {library}", ""]
    lines.append(f"{count} classes; one that is asked in several forms counts once.")
    for status, names in found.items():
        shown = ", ".join(f"`{name}`" for name in names)
        errors = _errors(results, library, names) if status not in _STATUSES else []
        if errors:
            said = "Its calls" if status == PART else "Tried all the same"
            shown += f"\n\n{said}:\n\n" + "\n".join(errors)
        said = f"{len(names)}: {_STATUSES.get(status, 'not asked: ' + status)}"
        lines += ["", f"<details><summary>{said}</summary>", "", shown, "", "</details>"]
    return "\n".join(lines) + "\n"


def _errors(results: dict[str, Any], library: str, names: list[str]) -> list[str]:
    """What attempts came to, of classes that were asked in no form."""
    found = results.get("errors", {})
    of = {n: [e for f, e in found.items() if _plain(f) == f"{library}/{n}"] for n in names}
    return [f"* `{n}`: `{e.replace('`', '')}`" for n, each in of.items() for e in each[:1]]


def joined(
    whole: dict[str, Any] | None, part: dict[str, Any], libraries: list[str]
) -> dict[str, Any]:
    """Put results of some libraries in place of those that are among all results."""
    if whole is None:
        return part

    def others(names: Any) -> Any:
        return [n for n in names if n.split("/")[0] not in libraries]

    found = {**whole, **{key: part[key] for key in ("command",)}}
    for key in _TABLES:
        before = whole.get(key, {})
        kept = {n: v for n, v in before.items() if n.split("/")[0] not in libraries}
        found[key] = {**kept, **part[key]}
    found["checked"] = [*others(whole["checked"]), *part["checked"]]
    found["findings"] = [
        *(f for f in whole["findings"] if f["name"].split("/")[0] not in libraries),
        *part["findings"],
    ]
    skipped = {why: others(names) for why, names in whole["skipped"].items()}
    for why, names in part["skipped"].items():
        skipped[why] = [*skipped.get(why, []), *names]
    found["skipped"] = {why: names for why, names in skipped.items() if names}
    found["families"] = len({n.split(".")[0] for n in found["checked"]})
    return found


def unasked(results: dict[str, Any]) -> set[str]:
    """Return the classes that were asked in no form."""
    found = {_plain(n) for names in results["skipped"].values() for n in names}
    asked = {_plain(n) for n in (*results["checked"], *results["same"])}
    return found - asked


def spliced(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Put results of classes that were not asked before in the place of why they were not."""
    named = [*part["checked"], *part["same"], *part["broken"]]
    named += [n for names in part["skipped"].values() for n in names]
    again = {_plain(n) for n in named}
    found = dict(whole)
    found["checked"] = [*whole["checked"], *part["checked"]]
    found["findings"] = [*whole["findings"], *part["findings"]]
    for key in ("same", "broken", "errors"):
        kept = {n: v for n, v in whole.get(key, {}).items() if _plain(n) not in again}
        found[key] = {**kept, **part[key]}
    skipped = {
        why: [n for n in names if _plain(n) not in again]
        for why, names in whole["skipped"].items()
    }
    for why, names in part["skipped"].items():
        skipped[why] = [*skipped.get(why, []), *names]
    found["skipped"] = {why: names for why, names in skipped.items() if names}
    found["libraries"] = {name: dict(counts) for name, counts in whole["libraries"].items()}
    for library, counts in part["libraries"].items():
        kept = found["libraries"][library]
        for key in ("checked", "relations", "same text", "broken"):
            kept[key] += counts[key]
        kept["skipped"] = sum(
            n.startswith(f"{library}/") for names in found["skipped"].values() for n in names
        )
    found["evidence"] = {**part["evidence"], **whole["evidence"]}
    found["minutes"] = round(whole["minutes"] + part["minutes"], 1)
    found["families"] = len({n.split(".")[0] for n in found["checked"]})
    return found


def _plain(name: str) -> str:
    """A name without the form it was asked in."""
    return name.split(" (", maxsplit=1)[0]
