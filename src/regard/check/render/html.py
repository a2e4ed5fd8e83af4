"""``--format html``: one page that opens from disk, prints, and needs no script and no request.

The verdict and what was not checked come first, then the findings, worst first, each with the
path of its tensors; then the weights before and after the fix, the relations, the regression
test, and how to get the page again. The JSON is embedded, so that the page is also the data.
"""

from collections.abc import Sequence
from html import escape

from regard.alignment import inline
from regard.check.finding import Finding, Report
from regard.check.render import figure, style
from regard.check.render.changed import changed
from regard.check.render.json_ import dumped
from regard.check.render.window import window
from regard.check.render.wording import (
    LEVELS,
    axes,
    is_limit,
    is_unchecked,
    plain,
    ran,
    shown,
    status,
    verdict,
)

__all__ = ["render"]

_CLASSES = {"+": "plus", "-": "minus"}


def render(reports: Sequence[Report], *, command: str = "") -> str:
    """Return the page.

    Parameters
    ----------
    reports : sequence of Report
    command : str
        What made them, for whoever wants to repeat it.
    """
    title = reports[0].target if len(reports) == 1 else f"{len(reports)} targets"
    body = "\n".join(_report(report, number) for number, report in enumerate(reports, 1))
    data = [report.as_json() for report in reports]
    embedded = dumped(data[0] if len(data) == 1 else {"results": data}, indent=None)
    embedded = inline.data(embedded)
    again = f'<h2>Again</h2>\n<pre tabindex="0">{_text(command)}</pre>' if command else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'">
<title>regard check: {_text(title)}</title>
<style>
{style.PAGE}
</style>
</head>
<body>
<main>
<h1>regard check: <span class="mono">{_text(title)}</span></h1>
{body}
{again}
</main>
<script type="application/json" id="regard-report">{embedded}</script>
</body>
</html>
"""


def _report(report: Report, number: int) -> str:
    findings = sorted(shown(report), key=lambda finding: LEVELS.index(finding.level))
    head = f'<h2 class="mono">{_text(report.target)}</h2>'
    parts = [
        f'<article id="target-{number}">',
        head,
        _verdict(report),
        _list("Not checked", report.not_checked),
        _list("Assumed, since nothing was declared", report.assumptions),
    ]
    parts += [
        _finding(finding, report, f"finding-{number}-{at}")
        for at, finding in enumerate(findings, 1)
    ]
    parts += [_weights(report), _relations(report), _test(report), _made(report), "</article>"]
    return "\n".join(part for part in parts if part)


def _verdict(report: Report) -> str:
    said = verdict(report)
    level = report.worst or ("error" if is_unchecked(report) else "")
    rest = "This is no pass." if is_unchecked(report) else f"{ran(report)}."
    return f'<p><span class="verdict {level}">{said}.</span> {_text(rest)}</p>'


def _finding(finding: Finding, report: Report, anchor: str) -> str:
    at = finding.location
    where = f"{at.path}:{at.line}:{at.column}"
    parts = [
        f'<section class="finding {finding.level}" id="{anchor}">',
        f'<h3><a href="#{anchor}">{finding.level}[{finding.code}]</a> '
        f"{_text(finding.name)}</h3>",
        f"<p>{_text(finding.message)}</p>",
        f'<p class="quiet mono">{_text(where)}</p>',
        _code(finding, report),
        _measured(finding),
        _facts(finding),
        _path(finding, report),
        _fixes(finding, report),
        f'<p class="quiet">Why: <code>regard explain {_text(finding.code)}</code></p>',
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _code(finding: Finding, report: Report) -> str:
    rows = window(finding, report, 100)
    lines = [
        f"{row.gutter}  {row.text}" + (f"  {row.note}" if row.note else "") for row in rows
    ]
    text = _text("\n".join(line.rstrip() for line in lines))
    return f'<pre tabindex="0">{text}</pre>' if rows else ""


def _measured(finding: Finding) -> str:
    rows = [(m.what, m.value, m.required) for m in finding.evidence.measured]
    return _table("What was measured", ("", "measured", "required"), rows) if rows else ""


def _facts(finding: Finding) -> str:
    evidence, tensor = finding.evidence, finding.tensor
    sizes = ", ".join(f"{name} = {size}" for name, size in evidence.sizes.items())
    wrong = ""
    if tensor is not None and tensor.expected:
        wrong = f"{tensor.name} is {axes(tensor.axes)}; it must be {axes(tensor.expected)}"
    facts = (
        ("Relation", evidence.equation),
        ("Wrong", wrong),
        ("At", sizes),
        ("The library said", evidence.quote),
        ("What hid it", finding.hidden),
        ("Also", finding.also),
        ("Only if (a guess)", finding.depends_on),
    )
    rows = [(name, text) for name, text in facts if text]
    body = "".join(f"<tr><th>{name}</th><td>{_text(text)}</td></tr>" for name, text in rows)
    return f"<table>{body}</table>" if rows else ""


def _path(finding: Finding, report: Report) -> str:
    steps = figure.path_of(finding, report)
    if not steps:
        return ""
    last = ""
    if finding.tensor is not None:
        last = " The last is the one of this finding; a wrong axis is outlined and named."
    rows = [
        (str(step.line) if step.line > 0 else "input", step.name, axes(step.axes))
        for step in steps
    ]
    return _figure(
        "The path of the tensors",
        f"One row a tensor in the order of their making, one box an axis.{last}",
        figure.tensors(finding, report),
        _table("The same as text", ("line", "tensor", "axes"), rows),
    )


def _fixes(finding: Finding, report: Report) -> str:
    if is_limit(finding):
        return ""
    parts = []
    for number, fix in enumerate(finding.fixes, 1):
        title = "Fix" if len(finding.fixes) == 1 else f"Choice {number}"
        if not fix.edits:
            parts.append(f"<p>No fix: {_text(fix.description)}</p>")
            continue
        lines = [
            f'<span class="{_CLASSES[sign]}">{sign} {_text(line)}</span>'
            for sign, line in changed(report.source, fix.edits)
        ]
        told = len(finding.fixes) > 1 and fix.description  # of one, the lines say it all
        more = f" {_text(fix.description)}" if told else ""
        parts.append(f"<p>{title} ({_text(status(fix))}).{more}</p>")
        parts.append('<pre tabindex="0">' + "\n".join(lines) + "</pre>")
    return "\n".join(parts) or "<p>No fix was proven.</p>"


def _weights(report: Report) -> str:
    before, after = report.weights_before, report.weights_after
    if not before:
        return ""
    grids = [("before", before)] + ([("after the fix", after)] if after else [])
    values = [value for _, grid in grids for row in grid for value in row]
    top = max([1.0, *(value for value in values if value < float("inf"))])
    drawn = "".join(
        f"<div><p>{name}</p>{figure.weights(grid, top, f'Weights {name}')}</div>"
        for name, grid in grids
    )
    tables = "".join(
        _table(
            f"Weights {name}",
            ("query", *(f"key {i}" for i in range(len(grid[0])))),
            [(str(t), *(f"{value:.3f}" for value in row)) for t, row in enumerate(grid)],
            numbers=True,
        )
        for name, grid in grids
    )
    see = "A row is one query; its cells must sum to 1."
    if after:
        see += " Both grids have one scale, so that their ink compares."
    return _figure(
        "Weights of one example",
        f"{see} A full cell is {top:.3g}.",
        f'<div class="side">{drawn}</div>',
        tables,
    )


def _relations(report: Report) -> str:
    if not report.relations:
        return ""
    repaired = any(relation.get("after") for relation in report.relations)
    heads = ("relation", "before", "after the fix") if repaired else ("relation", "result")
    keys = ("name", "before", "after")[: len(heads)]
    rows = [tuple(relation.get(key, "") for key in keys) for relation in report.relations]
    return "<h3>Relations</h3>\n" + _table(
        "Each is an equation that right code keeps", heads, rows
    )


def _test(report: Report) -> str:
    if not report.test:
        return ""
    return f'<h3>The regression test</h3>\n<pre tabindex="0">{_text(report.test)}</pre>'


def _made(report: Report) -> str:
    rows = [(name, version) for name, version in report.versions.items()]
    rows += [
        (f"sizes {number}", ", ".join(f"{name} = {size}" for name, size in sizes.items()))
        for number, sizes in enumerate(report.sizes, 1)
    ]
    rows.append(("seed", str(report.seed)))
    return "<h3>How it was made</h3>\n" + _table("Versions, sizes, seed", ("", ""), rows)


def _list(title: str, texts: Sequence[str]) -> str:
    items = "".join(f"<li>{_text(text)}</li>" for text in texts)
    return f"<h3>{title}</h3>\n<ul>{items}</ul>" if texts else ""


def _figure(title: str, sentence: str, drawn: str, table: str) -> str:
    caption = f"<figcaption><strong>{title}.</strong> {_text(sentence)}</figcaption>"
    return f'<figure tabindex="0">{caption}\n{drawn}\n{table}</figure>'


def _table(
    caption: str,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: bool = False,
) -> str:
    kind = ' class="number"' if numbers else ""
    top = "".join(f"<th>{_text(head)}</th>" for head in heads)
    top = f"<thead><tr>{top}</tr></thead>" if any(heads) else ""
    body = "".join(
        "<tr>" + "".join(f"<td{kind}>{_text(cell)}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><caption>{_text(caption)}</caption>{top}<tbody>{body}</tbody></table>"


def _text(text: str) -> str:
    return escape(plain(text))
