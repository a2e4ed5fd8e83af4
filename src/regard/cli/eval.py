"""``regard eval``: score a model on pairs."""

import json
from typing import TYPE_CHECKING, Any

import click

from regard.cli.answering import DONE
from regard.cli.column_options import COLUMN_OPTIONS, column_options, pairs_for
from regard.cli.example import ExampleCommand
from regard.cli.options import THREADS, Number, Where
from regard.cli.search_options import (
    SEARCH_OPTIONS,
    chosen_constraint,
    chosen_search,
    search_options,
    unknown_option,
    with_option,
)
from regard.cli.streams import say

if TYPE_CHECKING:
    from regard.seq2seq.evaluation import Evaluation
    from regard.seq2seq.rewriter import Rewriter

__all__ = ["evaluate"]

_RUN = 4  # words that BLEU looks at together
_MEASURES = {
    "symbol_error_rate": "symbol error rate",
    "exact_match_error": "exact-match error",
    "token_accuracy": "token accuracy",
}

_EXAMPLE = """
regard eval my-model held-out.tsv
regard eval my-model held-out.tsv --nbest 5 --by-length --errors 10
regard eval my-model held-out.tsv --beam 5 --length-penalty 0.6 --format json
"""


@click.command("eval", cls=ExampleCommand, example=_EXAMPLE)
@click.argument("model", type=Where())
@click.argument("data", type=Where(no_dash=True))
@with_option
@column_options
@search_options
@unknown_option
@click.option(
    "--metric",
    "metrics",
    type=click.Choice(["bleu", "chrf"]),
    multiple=True,
    help="Beside the error rates; may be given several times.",
)
@click.option(
    "--bootstrap",
    type=Number(int, 0, 100_000),
    default=1000,
    show_default=True,
    help="Samples for the 95 % intervals; 0 leaves them out.",
)
@click.option("--by-length", is_flag=True, help="Add the rates by the length of the source.")
@click.option(
    "--errors",
    type=Number(int, 0, 10**9),
    default=0,
    help="Add so many of the worst answers.",
)
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option("--threads", type=THREADS, default=1, show_default=True)
def evaluate(
    *,
    model: str,
    data: str,
    more: tuple[str, ...],
    allow: str | None,
    lexicon: str | None,
    unknown: str,
    metrics: tuple[str, ...],
    bootstrap: int,
    by_length: bool,
    errors: int,
    form: str,
    threads: int,
    **given: Any,
) -> int:
    """Score MODEL on DATA, a file of source<TAB>target lines.

    MODEL is a model directory, or what `regard export` wrote.

    Of several references the nearest counts. Error rates are in percent, lower is better. The
    intervals say how far chance in the choice of the pairs may have moved them, and nothing of
    other seeds or other data. --nbest K adds the rates of the best among the first 1 to K
    answers.
    """
    from regard.seq2seq.runtimes import load, runtime_of, set_threads

    set_threads(threads, runtime_of(model))
    from regard.seq2seq.evaluation import evaluate as answered

    search = chosen_search(**{name: given[name] for name in SEARCH_OPTIONS})
    transducer = load(model, *more)
    constraint = chosen_constraint(
        transducer.description,
        allow=allow,
        lexicon=lexicon,
        min_length=search.min_length,
        max_length=search.max_length,
    )
    columns = {name: given[name] for name in COLUMN_OPTIONS}
    pairs = pairs_for(transducer.description.source, data, **columns)
    _warn_of_unknown(data, pairs, transducer, unknown)
    if "bleu" in metrics and all(len(target.split()) < _RUN for _, target in pairs.items):
        click.echo(
            f"warning: {data}: no reference has {_RUN} words, and bleu counts runs of "
            f"{_RUN}: it is 0 whatever is answered; chrf compares letters",
            err=True,
        )
    found = answered(transducer, pairs, search=search, constraint=constraint, unknown=unknown)
    report = _report(found, metrics, bootstrap)
    report |= {"by_length": _lengths(found)} if by_length else {}
    report |= {"errors": _errors(found, errors)} if errors else {}
    if form == "json":
        say(json.dumps({"model": model, "data": data, **report}, ensure_ascii=False))
    else:
        say("\n".join([data, *_lines(found, report)]))
    return 0


def _warn_of_unknown(data: str, pairs: Any, transducer: "Rewriter", unknown: str) -> None:
    vocab = transducer.description.source
    sources = {source: set(vocab.unknown(source)) for source, _ in pairs.items}
    symbols = set().union(*sources.values())
    if symbols:
        shown = " ".join(repr(label) for label in sorted(map(vocab.label, symbols))[:20])
        more = " and more" if len(symbols) > 20 else ""
        with_some = sum(map(bool, sources.values()))
        click.echo(
            f"warning: {data}: {with_some} of {len(sources)} sources have "
            f"symbols that the model never saw: {shown}{more} ({DONE[unknown]})",
            err=True,
        )


def _report(found: "Evaluation", metrics: tuple[str, ...], samples: int) -> dict[str, Any]:
    from regard.cli.scores import score_mapping
    from regard.seq2seq import bleu

    report: dict[str, Any] = {**score_mapping(found.rates), "unfinished": found.unfinished}
    if samples:
        report["intervals"] = {}
        for measure in _MEASURES:
            interval = found.interval(measure, samples=samples)
            report["intervals"][measure] = [interval.low, interval.high]
    for name in metrics:
        score = getattr(bleu, name)([p.target for p in found.predictions], found.references)
        report[name] = {"score": score.score, "signature": score.signature}
    oracle = found.oracle()
    if len(oracle) > 1:
        report["oracle"] = [
            {
                "among": among,
                "symbol_error_rate": rates.symbol_error_rate,
                "exact_match_error": rates.exact_match_error,
            }
            for among, rates in enumerate(oracle, 1)
        ]
    return report


def _lengths(found: "Evaluation") -> list[dict[str, Any]]:
    from regard.cli.scores import score_mapping

    return [
        {"shortest": row.shortest, "longest": row.longest, **score_mapping(row.rates)}
        for row in found.by_length()
    ]


def _errors(found: "Evaluation", count: int) -> list[dict[str, Any]]:
    return [
        {
            "source": mistake.prediction.source,
            "answer": mistake.prediction.target,
            "references": list(mistake.references),
            "edits": mistake.counts.edits,
            "log_prob": mistake.prediction.hypothesis.log_prob,
        }
        for mistake in found.worst(count)
    ]


def _lines(found: "Evaluation", report: dict[str, Any]) -> list[str]:
    from regard.cli.scores import score_lines

    lines = score_lines(found.rates).split("\n")
    if "intervals" in report:
        for i, measure in enumerate(_MEASURES):
            low, high = report["intervals"][measure]
            lines[i] += f"  95 % interval {100 * low:.2f} to {100 * high:.2f}"
    if found.unfinished:
        lines.append(f"  {found.unfinished} answers have no end, cut at the longest allowed")
    for name in ("bleu", "chrf"):
        if name in report:
            score = report[name]
            lines.append(f"  {name:<17}  {score['score']:6.2f}    ({score['signature']})")
    if "oracle" in report:
        lines += ["", "the best among the first ...   symbol error   exact-match error"]
        lines += [
            f"{row['among']:>28}   {100 * row['symbol_error_rate']:10.2f} % "
            f"{100 * row['exact_match_error']:17.2f} %"
            for row in report["oracle"]
        ]
    if "by_length" in report:
        lines += ["", "source symbols   sources   symbol error   exact-match error"]
        lines += [
            f"{_span(row):>14} {row['examples']:>9}   {100 * row['symbol_error_rate']:10.2f} % "
            f"{100 * row['exact_match_error']:17.2f} %"
            for row in report["by_length"]
        ]
    if "errors" in report:
        lines += ["", "edits  source  ->  answer  (reference)"]
        lines += [
            f"{row['edits']:>5}  {_shown(row['source'])}  ->  {_shown(row['answer'])}  "
            f"({' | '.join(map(_shown, row['references']))})"
            for row in report["errors"]
        ] or ["    0"]
    return lines


def _span(row: dict[str, Any]) -> str:
    one = row["shortest"] == row["longest"]
    return str(row["shortest"]) if one else f"{row['shortest']}-{row['longest']}"


def _shown(text: str) -> str:
    """Return a text without what a terminal would obey."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
