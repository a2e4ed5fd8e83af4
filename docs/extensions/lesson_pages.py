"""The package's lessons as pages of the site, with their pictures set into the page."""

import shutil
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.util.docutils import SphinxDirective

from regard.check.skill import FOLDER as SKILL
from regard.learn.catalog import FOLDER, lessons
from regard.learn.figures import is_there

__all__ = ["setup"]

_FIGURES = "figures"


class _Interactive(SphinxDirective):
    """A figure's text, where the figure is there to be spoken of."""

    has_content = True
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.parse_content_to_nodes() if is_there(self.arguments[0]) else []


class _Quiz(SphinxDirective):
    """Questions, which the package's own pages ask."""

    has_content = True
    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        return []


def _copy(app: Any) -> None:
    folder = Path(app.srcdir) / "lessons"
    (folder / _FIGURES).mkdir(parents=True, exist_ok=True)
    rows = ["# Lessons", "", "From the bottleneck to the transformer. Every block of code was "
            "run, every number below one is what it printed, and every picture was drawn by "
        "it. "
            "`regard learn` has the same lessons offline.", ""]  # fmt: skip
    for lesson in lessons():
        _put(folder / lesson.path.name, lesson.path.read_text(encoding="utf-8"))
        rows.append(f"{lesson.number}. [{lesson.title}]({lesson.path.name}): {lesson.summary}")
    _put(folder / "skill.md", _skill())
    listed = "\n".join([lesson.stem for lesson in lessons()] + ["skill"])
    _put(
        folder / "index.md",
        "\n".join([*rows, "", f"```{{toctree}}\n:hidden:\n\n{listed}\n```\n"]),
    )
    for path in (FOLDER / _FIGURES).glob("*.svg"):
        shutil.copy2(path, folder / _FIGURES / path.name)


def _skill() -> str:
    """Return the skill as a page: without its front matter, its references as names."""
    text = (SKILL / "SKILL.md").read_text(encoding="utf-8").split("---\n", 2)[2].lstrip()
    return text.replace("](references/rules.md)", "](../rules/README.md)").replace(
        "[references/shapes.md](references/shapes.md)", "`references/shapes.md`"
    )


def _put(path: Path, text: str) -> None:
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def _set_in(app: Any, doctree: nodes.document, name: str) -> None:
    """Exchange diagrams for their own text, so that they take the page's colours."""
    if app.builder.format != "html" or not name.startswith("lessons/"):
        return
    for image in list(doctree.findall(nodes.image)):
        path = Path(app.srcdir) / "lessons" / _FIGURES / Path(image["uri"]).name
        if path.suffix == ".svg" and path.is_file():
            told = escape(image.get("alt", ""), quote=True)
            text = path.read_text(encoding="utf-8").replace(
                "<svg ", f'<svg aria-label="{told}" ', 1
            )
            image.replace_self(
                nodes.raw("", f'<div class="picture">{text}</div>', format="html")
            )


def setup(app: Any) -> dict[str, bool]:
    """Copy the lessons before Sphinx looks for them."""
    directives: dict[str, type[Directive]] = {"interactive": _Interactive, "quiz": _Quiz}
    for name, directive in directives.items():
        app.add_directive(name, directive)
    app.connect("builder-inited", _copy)
    app.connect("doctree-resolved", _set_in)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
