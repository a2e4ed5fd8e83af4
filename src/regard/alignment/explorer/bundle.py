"""JavaScript modules as one script, since a page opened from disk may import none."""

import re
from collections.abc import Sequence
from pathlib import Path

__all__ = ["HERE", "MODULES", "bundle", "script"]

HERE = Path(__file__).parent
MODULES = (
    "weights.js",
    "colors.js",
    "elements.js",
    "map.js",
    "words.js",
    "links.js",
    "heads.js",
    "table.js",
    "changes.js",
    "main.js",
)
"""In such an order that each comes after what it imports."""

_IMPORT = re.compile(r"^import \{[^}]*\} from \"\./[a-z]+\.js\";\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function |const )", re.MULTILINE)
_NAMED = re.compile(r"^export (?:async )?(?:function|const) (\w+)", re.MULTILINE)


def script() -> str:
    """Return the explorer's modules as one script that starts the page."""
    return bundle([HERE / name for name in MODULES])


def bundle(modules: Sequence[Path]) -> str:
    """Return modules as one script that calls ``start()``, which the last of them exports.

    Every module keeps its private names: it becomes a function that returns what it exports.

    Parameters
    ----------
    modules : sequence of Path
        Each after those that it imports. An import takes one line.
    """
    parts = []
    for path in modules:
        text = path.read_text(encoding="utf-8")
        exported = _NAMED.findall(text)
        body = _EXPORT.sub("", _IMPORT.sub("", text))
        names = ", ".join(exported)
        parts.append(f"const {{ {names} }} = (() => {{\n{body}return {{ {names} }};\n}})();")
    joined = "\n".join(parts)
    return f'(() => {{\n"use strict";\n{joined}\nstart();\n}})();\n'
