"""Lessons as HTML: Markdown, equations as MathML, coloured code, pictures set into the page.

The Markdown is read by markdown-it and the code coloured by Pygments, which both come with
rich: a page needs nothing that the package does not already have.
"""

import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

from regard.learn.mathml import mathml

__all__ = ["Directive", "slug", "to_html"]

Directive = Callable[[str, str], str]
"""Takes what stands after ``{name}`` and the HTML of the block's body, returns HTML."""

_LEXERS = {"python": "python", "text": "text", "console": "console", "sh": "bash"}


def to_html(
    text: str,
    *,
    folder: Path,
    link: Callable[[str], str] = lambda target: target,
    directives: dict[str, Directive] | None = None,
) -> str:
    """Return the HTML of a Markdown text.

    Parameters
    ----------
    text : str
        HTML in it is shown as text.
    folder : Path
        Where its pictures lie. SVG is set into the page, so that it takes the page's colours.
    link : callable
        Returns the address to use in place of one in the text.
    directives : mapping, optional
        What makes the HTML of a ``{name}`` block; without one its body is shown.

    Returns
    -------
    html : str
        A fragment. It refers to nothing but what its links name.

    Raises
    ------
    ValueError
        An equation, a picture or a kind of block is not known.
    """
    reader = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer)
    reader.enable("table")
    reader.inline.ruler.after("escape", "math", _inline_math)
    reader.block.ruler.before(
        "fence", "math", _display_math, {"alt": ["paragraph", "list", "blockquote"]}
    )
    renderer = reader.renderer
    assert isinstance(renderer, _Renderer)  # asked for above
    renderer.folder, renderer.link = folder, link
    renderer.directives = directives or {}
    renderer.inner = reader.render
    # A corner without words is no heading of anything.
    return str(reader.render(text)).replace("<th></th>", "<td></td>")


def slug(heading: str) -> str:
    """Return the anchor of a heading, as MyST and GitHub make it.

    >>> slug("Why `s_{t-1}`, not $s_t$?")
    'why-s_t-1-not-s_t'
    """
    kept = re.sub(r"[^\w\s-]", "", heading.lower())
    return re.sub(r"\s+", "-", kept.strip())


class _Renderer(RendererHTML):
    """markdown-it's renderer, with our own blocks, pictures and headings."""

    folder: Path
    link: Callable[[str], str]
    directives: dict[str, Directive]
    inner: Callable[[str], str]

    def math(self, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
        return mathml(tokens[at].content)

    def math_block(self, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
        shown = mathml(tokens[at].content, display=True)
        return f'<div class="equation scroll" tabindex="0">{shown}</div>\n'

    def heading_open(self, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
        tag = tokens[at].tag
        return f'<{tag} id="{slug(tokens[at + 1].content)}">'

    def table_open(self, _tokens: Sequence[Token], _at: int, _options: Any, _env: Any) -> str:
        return '<div class="scroll" tabindex="0"><table>\n'

    def table_close(self, _tokens: Sequence[Token], _at: int, _options: Any, _env: Any) -> str:
        return "</table></div>\n"

    def link_open(self, tokens: Sequence[Token], at: int, options: Any, env: Any) -> str:
        token = tokens[at]
        target = self.link(str(token.attrs["href"]))
        token.attrs["href"] = target
        if target.startswith("http"):
            token.attrs["rel"] = "noreferrer"
        return self.renderToken(tokens, at, options, env)

    def image(self, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
        source, told = str(tokens[at].attrs["src"]), tokens[at].content
        path = self.folder / source
        if path.suffix != ".svg" or not path.is_file():
            raise ValueError(f"to_html(): the picture {source} is not there, or is no SVG")
        picture = path.read_text(encoding="utf-8")
        # The words of the lesson are the picture's name for who does not see it.
        picture = picture.replace("<svg ", f'<svg aria-label="{escape(told)}" ', 1)
        return f'<span class="picture scroll" tabindex="0">{picture}</span>'

    def fence(self, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
        token = tokens[at]
        words = token.info.split()
        language = words[0] if words else "text"
        if language.startswith("{"):
            return self._directive(language[1:-1], " ".join(words[1:]), token.content)
        if language not in _LEXERS:
            raise ValueError(f"to_html(): blocks of {language!r} are not known")
        named = [word[5:] for word in words if word.startswith("file=")]
        title = f'<p class="file"><code>{escape(named[0])}</code></p>' if named else ""
        kind = "output" if language == "text" else "code"
        lexer = get_lexer_by_name(_LEXERS[language], stripnl=False)
        colored = highlight(token.content, lexer, HtmlFormatter(nowrap=True))
        label = "output" if kind == "output" else "code"
        return (
            f'<div class="{kind}">{title}<pre class="scroll" tabindex="0" role="group"'
            f' aria-label="{label}"><code>{colored}</code></pre></div>\n'
        )

    def _directive(self, name: str, said: str, body: str) -> str:
        make = self.directives.get(name)
        inner = self.inner(body)
        return make(said, inner) if make else inner


def _inline_math(state: StateInline, silent: bool) -> bool:
    """Read ``$...$``; a dollar before a space or a digit's end is a dollar."""
    start = state.pos
    if state.src[start] != "$" or state.src[start + 1 : start + 2] in {"", " ", "$"}:
        return False
    end = state.src.find("$", start + 1)
    if end < 0 or state.src[end - 1] == " ":
        return False
    if not silent:
        token = state.push("math", "math", 0)
        token.content = state.src[start + 1 : end]
    state.pos = end + 1
    return True


def _display_math(state: StateBlock, first: int, last: int, silent: bool) -> bool:
    """Read lines between two lines of ``$$``."""
    if _line(state, first) != "$$":
        return False
    end = first + 1
    while end < last and _line(state, end) != "$$":
        end += 1
    if end == last:
        return False
    if not silent:
        token = state.push("math_block", "math", 0)
        token.content = state.getLines(first + 1, end, state.blkIndent, keepLastLF=True)
        token.map = [first, end + 1]
        state.line = end + 1
    return True


def _line(state: StateBlock, number: int) -> str:
    start, end = state.bMarks[number] + state.tShift[number], state.eMarks[number]
    return str(state.src[start:end]).strip()
