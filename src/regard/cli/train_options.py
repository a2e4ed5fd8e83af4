"""The options of ``regard train``, in groups."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from regard.cli.column_options import column_options
from regard.cli.example import ExampleCommand
from regard.cli.options import STEPS, THREADS, Number, Where
from regard.errors import InputError, explain

__all__ = [
    "Duration",
    "GroupedCommand",
    "data_options",
    "learning_options",
    "length_options",
    "machine_options",
    "model_options",
    "output_options",
]

_F = TypeVar("_F", bound=Callable[..., Any])

_SYMBOLS = click.Choice(["chars", "graphemes", "spaces", "subwords"])
_ATTENTIONS = click.Choice(
    [
        "none",
        "bahdanau",
        "dot",
        "general",
        "concat",
        "local-m",
        "local-p",
        "coverage",
        "location",
        "monotonic",
        "bahdanau-paper",
    ]
)
_SIZE = Number(int, 1, 10**9)
_LAYERS = Number(int, 1, 100)
_COUNT = Number(int, 0, 10**9)
_SHARE = Number(float, 0, 1, open_high=True)
_POSITIVE = Number(float, 0, 10**9, open_low=True)

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "": 1.0}
_LONGEST = 1e7  # seconds, some months


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic in newer clicks only
    """A time: ``90s``, ``5m``, ``1.5h``, ``1h30m``, or a number of seconds."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds.

        Raises
        ------
        InputError
            It is no time, or not above 0.
        """
        if isinstance(value, float):
            return value
        text = str(value).strip().lower()
        parts = re.findall(r"(\d+(?:\.\d+)?)([hms]?)", text)
        whole = "".join(number + unit for number, unit in parts) == text
        # A bare number is of seconds, and stands alone.
        clear = whole and (len(parts) == 1 or all(unit for _, unit in parts))
        seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
        if not (clear and 0 < seconds <= _LONGEST):
            raise InputError(
                explain(
                    f"{'--time-budget' if param is None else max(param.opts, key=len)}: "
                    f"{text[:40]} is refused",
                    expected="a time above 0, as 90s, 5m or 1h30m",
                    got=text[:40],
                    help=None if ctx is None else f"`{ctx.command_path} --help` says more",
                )
            )
        return seconds


class GroupedCommand(ExampleCommand):
    """A command whose help lists its options in groups."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section for each group, options without one first."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                groups.setdefault(_GROUPS.get(str(param.name), "Options"), []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


_GROUPS: dict[str, str] = {}
"""The group of an option, by its name."""


def _grouped(title: str, *options: Callable[[Any], Any]) -> Callable[[_F], _F]:
    """Put options on a command in the order in which they are listed, under a title."""

    def decorate(command: _F) -> _F:
        there = len(getattr(command, "__click_params__", []))
        for option in reversed(options):
            command = option(command)
        for param in command.__click_params__[there:]:  # type: ignore[attr-defined]  # click's
            _GROUPS[param.name] = title
        return command

    return decorate


data_options = _grouped(
    "Data",
    click.option(
        "--dev", type=Where(no_dash=True), help="Held-out pairs; default: some of DATA."
    ),
    click.option("--test", type=Where(no_dash=True), help="Pairs for the final score."),
    click.option("--symbols", type=_SYMBOLS, help="How both sides are cut into symbols."),
    click.option(
        "--source-symbols", type=_SYMBOLS, help="The same for the source; default chars."
    ),
    click.option(
        "--target-symbols", type=_SYMBOLS, help="The same for the target; default chars."
    ),
    click.option("--vocab-size", type=_SIZE, help="Symbols of a side, for subwords."),
    column_options,
    click.option(
        "--normal-form",
        type=click.Choice(["NFC", "NFD", "NFKC", "none"]),
        help="Unicode form of all text; default NFC.",
    ),
    click.option("--no-nfc", is_flag=True, help="Short for --normal-form none."),
)

model_options = _grouped(
    "Model",
    click.option(
        "--attention",
        type=_ATTENTIONS,
        metavar="NAME",
        help=f"One of {', '.join(_ATTENTIONS.choices)}; default bahdanau.",
    ),
    click.option(
        "--score",
        type=click.Choice(["dot", "general", "concat"]),
        help="Of --attention local-m and local-p; default general.",
    ),
    click.option("--reach", type=_POSITIVE, help="Of local-m and local-p: symbols to a side."),
    click.option("--filters", type=_SIZE, help="Of --attention location; default 10."),
    click.option("--filter-width", type=_SIZE, help="Of --attention location; default 11."),
    click.option("--input-feeding", is_flag=True, help="For dot, general and concat."),
    click.option("--cell", type=click.Choice(["gru", "lstm"]), help="Default gru."),
    click.option(
        "--embedding", type=_SIZE, help="Size of a symbol's embedding; default 64 (*)."
    ),
    click.option(
        "--hidden", type=_SIZE, help="Encoder state of one direction; default 96 (*)."
    ),
    click.option(
        "--state", type=_SIZE, help="Decoder state; default 160 (*; dot: twice --hidden)."
    ),
    click.option("--layers", type=_LAYERS, help="Of the encoder; default 1 (*)."),
    click.option("--decoder-layers", type=_LAYERS, help="Default 1."),
    click.option("--readout", type=_SIZE, help="Layer below the output layer; default none."),
    click.option("--one-direction", is_flag=True, help="Let the encoder read forwards only."),
    click.option(
        "--tied", is_flag=True, help="Target embedding and output layer are one matrix."
    ),
    click.option(
        "--dropout",
        type=_SHARE,
        help="Default 0.1; 0.3 below 10,000 pairs, 0 for many that are read seldom.",
    ),
)

length_options = _grouped(
    "How long, and which weights",
    click.option(
        "--steps", type=STEPS, help="Training steps; default: from the size of the data."
    ),
    click.option(
        "--epochs",
        type=Number(float, 0, 10**6, open_low=True),
        help="Passes over the data, instead of --steps.",
    ),
    click.option(
        "--time-budget",
        type=Duration(),
        help="Time to take instead, as 90s, 5m, 1h30m. From 3m on, 50,000 pairs and more get "
        "other defaults where (*) stands.",
    ),
    click.option(
        "--clock",
        type=click.Choice(["wall", "cpu"]),
        help="What the budget is measured by; default wall.",
    ),
    click.option(
        "--metric",
        type=click.Choice(["symbol_error", "exact_match", "bleu"]),
        help="What the best weights are chosen by; default symbol_error.",
    ),
    click.option("--looks", type=_SIZE, help="At the held-out pairs; default 8."),
    click.option(
        "--patience", type=_COUNT, help="Looks without improvement before it ends; 0 never."
    ),
    click.option(
        "--average",
        type=_COUNT,
        help="Best looks whose mean is tried; default 4 with a budget.",
    ),
    click.option("--ema", type=_SHARE, help="Share that a running average of weights keeps."),
)

learning_options = _grouped(
    "Learning",
    click.option("--batch-tokens", type=_SIZE, help="Symbols in a batch; default 1000."),
    click.option("--accumulate", type=_SIZE, help="Batches in a step; default: one a process."),
    click.option("--learning-rate", type=_POSITIVE, help="At its highest; default 0.005 (*)."),
    click.option(
        "--decay",
        type=click.Choice(["cosine", "linear", "constant"]),
        help="How the learning rate falls; default linear.",
    ),
    click.option("--warm-up", type=_COUNT, help="Steps in which it rises; default 50."),
    click.option("--weight-decay", type=Number(float, 0, 10**3), help="Default 0."),
    click.option("--clip", type=_POSITIVE, help="Longest gradient; default 1."),
    click.option("--label-smoothing", type=_SHARE, help="Default 0."),
    click.option(
        "--sampling",
        type=Number(float, 0, 1),
        help="Scheduled sampling: rises over the run from 0 to this; default 0.",
    ),
    click.option(
        "--precision",
        type=click.Choice(["float32", "bfloat16"]),
        help="Of the forward pass; default float32.",
    ),
)

machine_options = _grouped(
    "Machine",
    click.option("--seed", type=Number(int, 0, 2**63 - 1), default=0, show_default=True),
    click.option("--threads", type=THREADS, default=1, show_default=True),
    click.option("--device", default="cpu", show_default=True, help="As torch names it: cuda."),
    click.option("--ensemble", type=Number(int, 1, 100), help="Models that answer together."),
    click.option("--jobs", type=THREADS, help="Models trained at a time; default: one a core."),
)

output_options = _grouped(
    "Output",
    click.option("--tensorboard", type=Where(no_dash=True), help="Directory for TensorBoard."),
    click.option(
        "--save-every", type=Duration(), help="What a kill loses at most; default 45s."
    ),
    click.option("--resume", is_flag=True, help="Go on with the run in --out."),
    click.option("--force", is_flag=True, help="Write over the run in --out."),
    click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
    ),
)
