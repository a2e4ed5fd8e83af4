"""The package's lessons as pages of the site, with their pictures set into the page."""

import shutil
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from regard.check.skill import FOLDER as SKILL
from regard.learn.catalog import FOLDER, lessons
from regard.learn.figures.figure import figure
from regard.learn.figures.figure import style as figure_style
from regard.learn.quiz.page import style as quiz_style
from regard.learn.quiz.page import with_questions
from regard.learn.script import script

__all__ = ["setup"]

_FIGURES = "figures"
_PLACE = "<!-- text -->"


# What a page of the site calls the colours that figures and questions use.
_COLORS = """
.interactive, .quiz {
  --paper: var(--color-background-primary); --ink: var(--color-foreground-primary);
  --quiet: var(--color-foreground-secondary); --frame: var(--color-foreground-border);
  --grid: var(--color-background-border); --band: var(--color-background-secondary);
  --accent: var(--color-brand-content);
}
"""


class _Interactive(SphinxDirective):
    """A figure, over the text that stands there without scripts."""

    has_content = True
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        before, after = figure(self.arguments[0], _PLACE).split(_PLACE)
        raw = (nodes.raw("", part, format="html") for part in (before, after))
        return [next(raw), *self.parse_content_to_nodes(), next(raw)]


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


def _ask(_app: Any, name: str, _template: str, context: dict[str, Any], _tree: Any) -> None:
    """Set a lesson's questions into its page, and the script that starts page and figures."""
    found = {f"lessons/{lesson.stem}": lesson.name for lesson in lessons()}
    if name in found:
        looks = _COLORS + figure_style() + quiz_style()
        context["body"] = (
            f"<style>{looks}</style>\n{with_questions(context['body'], found[name])}"
            f"<script>{script()}</script>\n"
        )


def setup(app: Any) -> dict[str, bool]:
    """Copy the lessons before Sphinx looks for them."""
    app.add_directive("interactive", _Interactive)
    app.connect("builder-inited", _copy)
    app.connect("doctree-resolved", _set_in)
    app.connect("html-page-context", _ask)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
