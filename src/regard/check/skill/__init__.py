"""The skill for coding assistants: a folder of Markdown, partly generated from the rules."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

from regard.check.rules import GROUPS, Rule, every

__all__ = ["FOLDER", "NAME", "RULES", "files", "rules_page"]

NAME = "attention-shapes"
FOLDER = Path(__file__).resolve().parent / NAME
RULES = "references/rules.md"
_WIDTH = 100


def files() -> Mapping[str, str]:
    """Return the texts of the skill by their paths in its folder."""
    paths = sorted(FOLDER.rglob("*.md"), key=lambda path: (len(path.parts), path))
    return {
        path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in paths
    }


def rules_page() -> str:
    """Return what :data:`RULES` must hold: every rule, as briefly as it can be used."""
    parts = [
        "# Rules of `regard check`",
        "`regard explain CODE` prints the smallest example of each, and what it prints.",
    ]
    for prefix, group in GROUPS.items():
        parts.append(f"## {prefix} {group}")
        parts += [_rule(rule) for rule in every() if rule.code.startswith(prefix)]
    return "\n\n".join(parts) + "\n"


def _rule(rule: Rule) -> str:
    said = {
        "Relation": rule.equation,
        "Wrong": rule.what,
        "Hidden": rule.hides,
        "Fix": rule.recipe,
        "Not a bug": rule.not_a_bug,
    }
    head = f"### {rule.code} {rule.name} ({rule.level})\n\n{_filled(rule.title)}."
    return f"{head}\n\n" + "\n".join(_filled(f"- {k}: {v}", "  ") for k, v in said.items())


def _filled(text: str, indent: str = "") -> str:
    return textwrap.fill(
        text,
        _WIDTH,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
