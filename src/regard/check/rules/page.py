"""What is told of a rule: as text for a terminal, as Markdown for a page, as a mapping."""

import difflib
import textwrap
from collections.abc import Iterable
from typing import Any

from regard.check.rules.base import GROUPS, Rule

__all__ = ["as_mapping", "diff", "index", "markdown", "text"]


def text(rule: Rule, *, width: int = 80) -> str:
    """Return the explanation for a terminal, without a newline at the end."""
    parts = [
        f"{rule.code} {rule.name} ({rule.level}; group {rule.group})\n{rule.title}",
        _section("what it is", _filled(rule.what, width)),
        _section("relation", _filled(rule.equation, width)),
        _section("smallest example", _indented(_shown(rule))),
        _section("it prints", _indented(rule.bad.prints)),
        _section("why it hides", _filled(rule.hides, width)),
        _section("fix", _filled(rule.recipe, width)),
    ]
    if _is_mended(rule):
        parts[-1] += "\n\n" + _indented("\n".join(diff(rule)))
        parts.append(_section("then it prints", _indented(rule.good.prints)))
    parts.append(_section("not a bug", _filled(rule.not_a_bug, width)))
    if rule.references:
        parts.append(_section("read", "\n".join(_filled(r, width) for r in rule.references)))
    return "\n\n".join(parts)


def markdown(rule: Rule) -> str:
    """Return the rule's page."""
    parts = [
        f"# {rule.code} {rule.name}",
        f"*{rule.title}.* Level: {rule.level}. Group: {rule.group}.",
        "## What it is",
        rule.what,
        "## The relation",
        f"```text\n{rule.equation}\n```",
        "## The smallest example",
        f"```python\n{_shown(rule)}\n```",
        f"It prints\n\n```text\n{rule.bad.prints}\n```",
        "## Why it hides",
        rule.hides,
        "## Fix",
        rule.recipe,
    ]
    if _is_mended(rule):
        parts += [
            "```diff\n" + "\n".join(diff(rule)) + "\n```",
            f"Then it prints\n\n```text\n{rule.good.prints}\n```",
        ]
    parts += ["## When it is not a bug", rule.not_a_bug]
    if rule.references:
        parts += ["## References", "\n".join(f"- {reference}" for reference in rule.references)]
    return "\n\n".join(parts) + "\n"


def index(rules: Iterable[Rule]) -> str:
    """Return the page that lists the rules, by group."""
    parts = [
        "# Rules of `regard check`",
        "A code is never used again, and a name is as permanent; every option takes either. "
        "`regard explain CODE` prints a page.",
    ]
    listed = list(rules)
    for prefix, name in GROUPS.items():
        rows = [
            f"| [{rule.code}]({rule.code}.md) | {rule.name} | {rule.level} | {rule.title} |"
            for rule in listed
            if rule.code.startswith(prefix)
        ]
        head = "| code | name | level | what is wrong |\n|---|---|---|---|"
        parts += [f"## {prefix} {name}", "\n".join([head, *rows])]
    return "\n\n".join(parts) + "\n"


def as_mapping(rule: Rule) -> dict[str, Any]:
    """Return the rule as plain texts, for JSON."""
    names = ("code", "name", "level", "group", "title", "what", "equation", "hides", "recipe")
    return {
        **{name: getattr(rule, name) for name in names},
        "not_a_bug": rule.not_a_bug,
        "references": list(rule.references),
        **{
            kind: {
                "source": example.source,
                "entry": example.entry,
                "contract": dict(example.contract),
                "show": example.show,
                "prints": example.prints,
            }
            for kind, example in (("bad", rule.bad), ("good", rule.good))
        },
    }


def diff(rule: Rule) -> list[str]:
    """Return the lines that mend the bad example, without their shared indentation."""
    before, after = rule.bad.source.splitlines(), rule.good.source.splitlines()
    rows = [row for row in difflib.ndiff(before, after) if row[0] in "+-"]
    bare = textwrap.dedent("\n".join(row[2:] for row in rows)).split("\n")
    return [f"{row[0]} {line}".rstrip() for row, line in zip(rows, bare, strict=True)]


def _is_mended(rule: Rule) -> bool:
    # What a check cannot do at all has no mended form: its good example is another file.
    return rule.group != "run"


def _shown(rule: Rule) -> str:
    return "\n\n\n".join(part.strip() for part in (rule.bad.source, rule.bad.show) if part)


def _section(title: str, body: str) -> str:
    return f"{title}\n{body}"


def _indented(body: str) -> str:
    return textwrap.indent(body, "    ")


def _filled(body: str, width: int) -> str:
    return textwrap.fill(
        body,
        width,
        initial_indent="  ",
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
