"""Pages that come and go: rules are listed from what is there, results shown where they are."""

import re
from pathlib import Path
from typing import Any

__all__ = ["setup"]

_OPTIONAL = re.compile(r"^\?([\w/-]+)\n", re.MULTILINE)
_RULES = "\n```{toctree}\n:hidden:\n:glob:\n\nRG*\n```\n"
_CITATION = re.compile(r"\[(\d+)\]_")
_STARRED = re.compile(r"(?<!`\()(?<![\\\w*`])\*(?=(?:batch|rows)\b)")
_CITED = re.compile(r"^(\s*)\.\. \[(\d+)\] ")


def _read(app: Any, name: str, source: list[str]) -> None:
    """Let a toctree name pages that may be missing (``?tasks``), and list the rules."""

    def kept(match: re.Match[str]) -> str:
        return f"{match[1]}\n" if (Path(app.srcdir) / f"{match[1]}.md").exists() else ""

    source[0] = _OPTIONAL.sub(kept, source[0])
    if name == "rules/README":
        source[0] += _RULES


def _number(*event: Any) -> None:
    """Number an object's references for itself: a page has many that are the first."""
    lines: list[str] = event[-1]
    for place, line in enumerate(lines):
        text = _CITED.sub(r"\1\2. ", _CITATION.sub(r"[\1]", line))
        # In prose a star opens emphasis.
        lines[place] = _STARRED.sub(r"\\*", text)


def _forget(app: Any, env: Any) -> None:
    """Leave modules without a source, as ``builtins``, out of the list of sources."""
    del app
    sources = getattr(env, "_viewcode_modules", {})
    for name in [name for name, found in sources.items() if not found]:
        del sources[name]


def setup(app: Any) -> dict[str, bool]:
    """Connect both."""
    app.connect("source-read", _read)
    app.connect("autodoc-process-docstring", _number)
    app.connect("env-updated", _forget)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
