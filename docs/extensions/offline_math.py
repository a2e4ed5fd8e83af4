"""Equations as MathML, so that no page needs a script or a font from elsewhere."""

from pathlib import Path
from typing import Any

from docutils.nodes import SkipNode
from sphinx.util.fileutil import copy_asset

import regard.learn
from regard.learn.mathml import mathml

__all__ = ["setup"]

_STYLE = Path(regard.learn.__file__).parent / "math.css"


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(mathml(node.astext()))
    raise SkipNode


def _display(translator: Any, node: Any) -> None:
    body = mathml(node.astext(), display=True)
    translator.body.append(f'<div class="equation">{body}</div>')
    raise SkipNode


def _copy_style(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.format == "html":
        copy_asset(_STYLE, Path(app.outdir) / "_static", force=True)


def setup(app: Any) -> dict[str, bool]:
    """Become the renderer of equations."""
    app.add_html_math_renderer("offline", (_inline, None), (_display, None))
    app.add_css_file(_STYLE.name)
    app.connect("build-finished", _copy_style)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
