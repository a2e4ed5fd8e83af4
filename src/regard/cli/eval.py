"""``regard eval``: score a model on pairs."""

import json

import click

from regard.cli.example import ExampleCommand
from regard.cli.options import THREADS, Where
from regard.cli.streams import say

__all__ = ["evaluate"]

_EXAMPLE = """
regard eval my-model held-out.tsv
regard eval my-model held-out.tsv --format json
"""


@click.command("eval", cls=ExampleCommand, example=_EXAMPLE)
@click.argument("model", type=Where())
@click.argument("data", type=Where(no_dash=True))
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option("--threads", type=THREADS, default=1, show_default=True)
def evaluate(*, model: str, data: str, form: str, threads: int) -> int:
    """Score MODEL on DATA, a file of source<TAB>target lines.

    Of several references the nearest counts. Error rates are in percent, lower is better.
    """
    import torch

    from regard.cli.scores import score_lines, score_mapping
    from regard.seq2seq.pairs import read_pairs
    from regard.seq2seq.transducer import Transducer

    torch.set_num_threads(threads)
    transducer = Transducer.load(model)
    pairs = read_pairs(data, nfc=transducer.description.source.nfc)
    vocab = transducer.description.source
    unknown = {symbol for source, _ in pairs.items for symbol in vocab.unknown(source)}
    if unknown:
        shown = " ".join(repr(symbol) for symbol in sorted(unknown)[:20])
        more = " and more" if len(unknown) > 20 else ""
        click.echo(f"symbols that the model never saw: {shown}{more}", err=True)
    rates = transducer.error_rates(pairs)
    if form == "json":
        say(json.dumps({"model": model, "data": data, **score_mapping(rates)}))
    else:
        say(f"{data}\n{score_lines(rates)}")
    return 0
