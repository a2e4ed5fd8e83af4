"""One HTML file that asks nothing of any network: its frame, its style and inline pictures."""

import html
import re

from regard.alignment.colors import DARK
from regard.demo.looks import LOOKS, SPARE
from regard.errors import InputError, explain

__all__ = ["inline_svg", "page"]

_COLORS = {**DARK, **{look.color: look.dark for look in (*LOOKS.values(), *SPARE)}}
_STYLE = """
:root {
  color-scheme: light dark;
  --page: #f5f6f8; --card: #ffffff; --ink: #1f2328; --quiet: #59636e; --line: #d8dde3;
  --soft: #eceff3; --accent: #0072b2; --cells: none;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --page: #0d1016; --card: #14181f; --ink: #e6e9ee; --quiet: #a3adba; --line: #333b47;
    --soft: #222935; --accent: #58b0ee; --cells: invert(1) hue-rotate(180deg);
    PICTURE
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--ink); line-height: 1.55;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2.5rem; }
footer { padding-bottom: 3rem; color: var(--quiet); font-size: .9rem; }
h1 { font-size: clamp(1.6rem, 5vw, 2.3rem); line-height: 1.15; margin: 0 0 .4rem; }
h2 { font-size: 1.3rem; margin: 2.6rem 0 .7rem; line-height: 1.25; }
h3 { font-size: 1.05rem; margin: 0 0 .4rem; overflow-wrap: anywhere; }
p, ul { max-width: 44rem; }
p { margin: .6rem 0; }
.quiet { color: var(--quiet); }
.finding {
  font-size: 1.12rem; border-left: .3rem solid var(--accent); padding: .2rem 0 .2rem 1rem;
}
figure {
  margin: 1rem 0; padding: 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .6rem;
}
figcaption { color: var(--quiet); font-size: .92rem; margin-top: .6rem; max-width: 48rem; }
.scroll { overflow-x: auto; }
.scroll:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
svg { display: block; width: 100%; height: auto; }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
svg text { fill: var(--ink); }
svg image { filter: var(--cells); }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; width: 100%; }
caption { text-align: left; font-weight: 600; padding: .2rem 0 .5rem; }
caption span { position: sticky; left: 0; display: inline-block; max-width: 85vw; }
th, td { padding: .4rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
thead th { font-weight: 600; color: var(--quiet); vertical-align: bottom; }
tr > th:first-child[rowspan], tbody th {
  text-align: left; font-weight: 600; position: sticky; left: 0; background: var(--page);
}
tbody th { min-width: 6.5rem; }
td small { display: block; color: var(--quiet); white-space: nowrap; font-size: .78rem; }
.scroll + .scroll { margin-top: 1.6rem; }
th[scope=colgroup] { text-align: center; }
.beyond { background: var(--soft); }
tr.gap > * { border-bottom: 0; font-weight: 700; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.25rem; }
dl { margin: .8rem 0; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
.numbers { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; padding: 0; list-style: none; }
.numbers b { display: block; font-size: 1.7rem; line-height: 1.2; }
.words {
  display: grid; gap: 1rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr));
}
.words figure { margin: 0; }
.tokens { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
code {
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: .92em;
  background: var(--soft); padding: .1em .35em; border-radius: .25rem; overflow-wrap: anywhere;
}
@media (max-width: 34rem) {
  main, header, footer { padding-left: .9rem; padding-right: .9rem; }
  figure { padding: .6rem; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; }
}
@media print {
  body { background: none; font-size: 10pt; }
  figure, table, .finding { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  figure { border: 0; padding: 0; }
  .scroll { overflow: visible; }
  .scroll svg { min-width: 0 !important; }
  .beyond, tbody th, tr > th:first-child[rowspan] { background: none; }
  th, td { padding: .25rem .3rem; font-size: 8.5pt; }
  td small { font-size: 7pt; }
}
"""


def page(title: str, body: str) -> str:
    """Return a whole HTML document.

    Parameters
    ----------
    title : str
        Plain text; it is escaped.
    body : str
        HTML, of which the caller has escaped what was not its own.
    """
    # The policy makes a request impossible even if a picture held one.
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    picture = " ".join(f"--c{light[1:]}: {dark};" for light, dark in _COLORS.items())
    style = _STYLE.replace("PICTURE", picture)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n"
        f"<style>{style}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def inline_svg(svg: str, *, name: str, label: str, narrowest: int = 0) -> str:
    """Return an SVG picture made ready to stand inside a page.

    Its ids get a prefix, since several pictures share one page; its known colours follow the
    page into dark mode; a screen reader is told what it shows.

    Parameters
    ----------
    svg : str
        As :func:`regard.alignment.heatmap.svg` returns it.
    name : str
        Prefix of its ids, unique on the page.
    label : str
        What the picture shows, in words; plain text.
    narrowest : int
        Width in CSS pixels below which the picture scrolls instead of shrinking; such a picture
        also grows with the page. 0 for one that shrinks, and never grows.

    Raises
    ------
    InputError
        `svg` is no picture, holds a script, or refers to something outside itself.
    """
    found = re.search(r"<svg\b([^>]*)>(.*)</svg>\s*$", svg, flags=re.DOTALL)
    view = found and re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', found[1])
    outside = re.search(
        r"<script|\son\w+=|@import|href=\"(?!#|data:)[^\"]*\"|url\((?!#|'#|\"#)[^)]*\)", svg
    )
    if not found or not view or outside:
        raise InputError(
            explain(
                f"report: the picture {name!r} cannot be shown",
                expected="an SVG document that refers to nothing outside itself",
                got=outside[0][:60] if outside else f"{svg[:40]!r} without a viewBox",
            )
        )
    body = re.sub(r"<style.*?</style>", "", found[2], flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'(href="|url\()#', rf"\1#{name}-", body)
    body = re.sub(
        r"(fill|stroke): (#[0-9a-f]{6})",
        lambda match: f"{match[1]}: {_themed(match[2])}",
        body,
    )
    # The page's own font: matplotlib's list of ten is of no use to a reader.
    body = re.sub(r"font-family: [^;\"]*", "font-family: inherit", body)
    width = round(float(view[1]) * 4 / 3)  # points to CSS pixels
    limit = f"min-width: {narrowest}px" if narrowest else f"max-width: {width}px"
    drawn = (
        f'<svg viewBox="{view[0][9:-1]}" role="img" aria-label="{html.escape(label)}"'
        f' style="{limit}">{body}</svg>'
    )
    if not narrowest:
        return drawn
    return f'<div class="scroll" tabindex="0" role="region" aria-label="picture">{drawn}</div>'


def _themed(color: str) -> str:
    # CSS has `light-dark()`, but only browsers of 2024 on; an unknown colour stays as it is.
    return f"var(--c{color[1:]}, {color})" if color in _COLORS else color
