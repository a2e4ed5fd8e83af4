"""The report as one HTML page: opens from disk, asks nothing of any network, prints well."""

import html
import math
from collections.abc import Iterator, Sequence

from regard.audit.page_style import STYLE
from regard.audit.verdict import Audit, Claim, Gate, Table, Token, WorstInput

__all__ = ["page"]

# The policy makes a request impossible even if a text held one.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_MARKS = {
    "granted": "✓",
    "passed": "✓",
    "refused": "✕",
    "failed": "✕",
    "undecided": "?",
    "not tested": "-",
}
_LIMITS = (
    "A verdict is about this model, these weights and inputs like these; nothing carries over "
    "to another layer, head, seed or kind of text.",
    "Erased inputs are none that the model was trained on; the ways of erasing differ, and all "
    "are shown.",
    "Leave-one-out and gradients are no truth to be matched: they are what else was tried.",
    "No test here shows what an answer is due to. L2 and L3 say how the output moves when "
    "attended tokens go.",
)


def page(audit: Audit) -> str:
    """Return the page.

    Parameters
    ----------
    audit : Audit
        Every number on the page is one of its own, to three places.
    """
    title = f"regard audit: {audit.subject}"
    body = "\n".join([*_head(audit), *_tests(audit), *_worst(audit), *_foot(audit)])
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_safe(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _head(audit: Audit) -> Iterator[str]:
    verdict = audit.verdict
    yield "<h1>What may be claimed from these weights</h1>"
    yield f"<p class=quiet>{_safe(audit.subject)}</p>"
    yield (
        f'<section class="verdict {verdict.status}"><h2>{_safe(verdict.headline)}</h2>'
        f"<p>{_safe(verdict.text)}</p><ul class=claims>"
    )
    yield from (_claim(claim) for claim in verdict.claims)
    yield "</ul></section>"
    if verdict.downgrades:
        yield "<h2>What weakens the reading</h2><ul>"
        yield from (f"<li>{_safe(text)}</li>" for text in verdict.downgrades)
        yield "</ul>"
    facts = [
        ("inputs", _counted(audit)),
        ("seed", str(audit.seed)),
        ("data", audit.data),
        ("asked of the model", f"{audit.asked:,} inputs, altered ones included"),
        ("time", f"{audit.seconds:.0f} s"),
        ("made by", f"regard {audit.version}"),
        *([("repeat with", audit.command)] if audit.command else []),
    ]
    yield "<h2>What was looked at</h2><dl>"
    yield from (f"<dt>{name}</dt><dd>{_safe(value)}</dd>" for name, value in facts)
    yield "</dl>"
    yield (
        "<h2>Rules that decided</h2><div class=scroll tabindex=0><table class=gates><thead><tr>"
        "<th>gate</th><td></td><th>asked</th><th>found</th></tr></thead><tbody>"
    )
    yield from (_gate(gate) for gate in verdict.gates)
    yield "</tbody></table></div>"


def _claim(claim: Claim) -> str:
    mark = _MARKS[claim.outcome]
    return (
        f'<li class="{claim.outcome}"><b>{mark} {claim.level} {claim.outcome}</b> '
        f"{_safe(claim.text)}</li>"
    )


def _gate(gate: Gate) -> str:
    more = ""
    if gate.outcome == "undecided":
        more = (
            "; no affordable number of inputs would decide it"
            if gate.more is None
            else f"; about {gate.more:,} more inputs would decide it"
        )
    kind = gate.outcome.replace(" ", "-")
    return (
        f'<tr class="{kind}"><th scope=row>{_safe(gate.name)}</th>'
        f"<td class=outcome>{_MARKS[gate.outcome]} "
        f"{gate.outcome}</td><td>{_safe(gate.rule)}</td><td>{_safe(gate.said + more)}</td></tr>"
    )


def _tests(audit: Audit) -> Iterator[str]:
    if audit.tables:
        yield "<h2>What was measured</h2>"
    for table in audit.tables:
        yield from _table(table)
    if audit.verdict.not_tested:
        yield "<h2>What was not tested</h2><ul>"
        yield from (
            f"<li>{_safe(name)}: {_safe(why)}</li>" for name, why in audit.verdict.not_tested
        )
        yield "</ul>"


def _table(table: Table) -> Iterator[str]:
    gated = "read by a gate" if table.gates else "descriptive, no gate reads it"
    yield (
        f"<section class=test><h3>{_safe(table.title)} <small>{gated}</small></h3>"
        "<div class=scroll tabindex=0><table><thead><tr><td></td><th>value</th>"
        "<th>95&nbsp;% interval</th>"
        "<th>random</th><th>best tried</th><th>published</th></tr></thead><tbody>"
    )
    for row in table.rows:
        estimate = row.estimate
        yield (
            f"<tr><th scope=row>{_safe(row.name)}</th><td>{_number(estimate.value)}</td>"
            f"<td>{_number(estimate.low)} to {_number(estimate.high)}</td>"
            f"<td>{_number(row.random)}</td><td>{_number(row.best)}</td>"
            f"<td>{_safe(row.published or '')}</td></tr>"
        )
    yield (
        f"</tbody></table></div><p class=quiet>Shows {_safe(table.shows)}.<br>"
        f"Does not show {_safe(table.hides)}.</p></section>"
    )


def _worst(audit: Audit) -> Iterator[str]:
    if not audit.worst:
        return
    yield (
        f"<h2>The {len(audit.worst)} inputs where the weights say least</h2>"
        "<p>Above: weight. Below: how far p(predicted) falls when the token is left out "
        "(leave-one-out); a dot where it was not. Underlined: marked by people.</p>"
    )
    for one in audit.worst:
        yield from _input(one)


def _input(one: WorstInput) -> Iterator[str]:
    before = (
        f" after <i>{_safe(' '.join(one.before) or 'nothing')}</i>"
        if one.before is not None
        else ""
    )
    yield (
        f"<figure><figcaption>Input {one.place}: predicted "
        f"<b>{_safe(one.predicted)}</b>{before}, p {_number(one.probability)}. "
        "Without the most attended token it falls by "
        f"{_number(one.top_weight_effect)}, without the one that moves it most by "
        f"{_number(one.largest_effect)}.</figcaption><div class=tokens>"
    )
    most = max((token.weight for token in one.tokens), default=0.0)
    effects = [token.effect for token in one.tokens if token.effect is not None]
    largest = max((abs(effect) for effect in effects), default=0.0)
    yield from (_token(token, most, largest) for token in one.tokens)
    yield "</div></figure>"


def _token(token: Token, most: float, largest: float) -> str:
    weight = _share(token.weight, most)
    effect = 0.0 if token.effect is None else _share(max(token.effect, 0.0), largest)
    shown = "·" if token.effect is None else _number(token.effect, 2)
    gold = " gold" if token.gold else ""
    return (
        f'<span class="token{gold}"><span class=weight style="--share:{weight:.2f}">'
        f"{_number(token.weight, 2)}</span><b>{_safe(token.text)}</b>"
        f'<span class=effect style="--share:{effect:.2f}">{shown}</span></span>'
    )


def _foot(audit: Audit) -> Iterator[str]:
    yield "<h2>Limits</h2><ul>"
    yield from (f"<li>{_safe(text)}</li>" for text in (*_LIMITS, *audit.notes))
    yield "</ul>"


def _counted(audit: Audit) -> str:
    left_out = "; ".join(f"{count} left out: {why}" for why, count in audit.left_out)
    return f"{audit.n}{f' ({left_out})' if left_out else ''}"


def _number(value: float | None, places: int = 3) -> str:
    if value is None or math.isnan(value):
        return "-"
    if math.isinf(value):
        return "open"
    return f"{value:.{places}f}"


def _share(value: float, most: float) -> float:
    return value / most if most > 0 else 0.0


def _safe(text: str | Sequence[str]) -> str:
    return html.escape(str(text))
