"""From the options of ``regard train`` to its data and settings."""

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from regard.cli.column_options import chosen_columns
from regard.cli.recipe_task import recipe_called, settings_of
from regard.errors import InputError, explain
from regard.files import as_argument

if TYPE_CHECKING:
    from regard.seq2seq.job import JobSettings
    from regard.seq2seq.pairs import Pairs
    from regard.seq2seq.recipes.recipe import Recipe

__all__ = ["FLAGS", "Task", "task_of", "warn_of_overlap"]

_LOOKS = 8
_AVERAGE = 4  # costs one look, and is taken only where it is better

# What an option is called in TrainConfig and in the model's entries.
_TRAINING = (
    "time_budget",
    "clock",
    "patience",
    "average",
    "ema",
    "accumulate",
    "learning_rate",
    "decay",
    "warm_up",
    "weight_decay",
    "clip",
    "label_smoothing",
    "sampling",
    "precision",
)
_MODEL = {
    "score": "score",
    "reach": "reach",
    "filters": "filters",
    "filter_width": "filter_width",
    "readout": "d_readout",
    "input_feeding": "input_feeding",
    "cell": "cell",
    "embedding": "d_in",
    "layers": "layers",
    "decoder_layers": "decoder_layers",
    "tied": "tied",
}

FLAGS: dict[str, str] = {
    name: "--" + option.replace("_", "-")
    for name, option in (
        *((f"train.{option}", option) for option in (*_TRAINING, "steps", "seed")),
        *((f"model.{entry}", option) for option, entry in _MODEL.items()),
        *((option, option) for option in ("source_symbols", "target_symbols", "vocab_size")),
        *((option, option) for option in ("normal_form", "batch_tokens", "metric")),
        *((f"model.{option}", option) for option in ("attention", "dropout")),
        ("model.d_hidden", "hidden"),
        ("model.d_s", "state"),
        ("model.bidirectional", "one_direction"),
        ("train.looks", "looks"),
    )
}
"""The option that decides an entry of a run's settings, for those that have one."""


class Task(NamedTuple):
    """What is trained, on what."""

    train: "Pairs"
    dev: "Pairs"
    test: "Pairs | None"
    settings: "JobSettings"
    recipe: "Recipe | None" = None
    members: int = 1
    """Models that answer together, unless another number is asked for."""
    beam: int = 1
    """Width of the search that the scores are stated for."""


def task_of(data: str, preset: str | None, *, seed: int, **options: Any) -> Task:
    """Return data and settings.

    Parameters
    ----------
    data : str
        A file, or the name of a recipe.
    preset : str or None
    seed : int
    **options
        As the command line has them; None and False are options that were not given.

    Raises
    ------
    InputError, click.UsageError
        The data cannot be read, or options do not hold or go together.
    """
    given: dict[str, Any] = {
        name: value
        for name, value in options.items()
        if _is_given(value) or (name == "header" and value is False)
    }
    _refuse_together(**given)
    where = {name: given.pop(name, None) for name in ("language", "data_dir")}
    recipe = recipe_called(data, **where)
    if recipe is not None and recipe.has_presets and "time_budget" not in given:
        return _preset(recipe, preset, seed=seed, **given)
    if preset is not None:
        raise click.UsageError(
            "--preset belongs to the recipe `g2p` for English, and has a time"
        )
    if recipe is not None:
        settings = settings_of(recipe, seed=seed, **given)
        return Task(*recipe.load(), settings, recipe, recipe.members, recipe.beam)
    return _file(data, seed=seed, **given)


def _is_given(value: Any) -> bool:
    # By identity: 0 equals False, and who writes `--dropout 0` means it.
    return not (value is None or value is False or value == ())


def _preset(recipe: "Recipe", preset: str | None, *, seed: int, **given: Any) -> Task:
    """Return the recipe with a number of steps, not a time: every machine makes one model."""
    from regard.seq2seq.recipes import g2p

    settings_of(recipe, seed=seed, **given)  # refuses what it sets itself
    settings = g2p.settings(
        preset or "minute",
        attention=given.get("attention", "bahdanau"),
        steps=given.get("steps"),
        seed=seed,
    )
    training = dataclasses.replace(settings.train, accumulate=given.get("accumulate", 1))
    settings = dataclasses.replace(settings, train=training)
    return Task(*recipe.load(), settings, recipe)


def _file(data: str, *, seed: int, **given: Any) -> Task:
    from regard.seq2seq.pairs import read_pairs
    from regard.seq2seq.recipes.pairs import held_out_count

    form = given.get("normal_form", "none" if "no_nfc" in given else "NFC")
    columns = _columns(given)

    def read(path: str) -> "Pairs":
        return read_pairs(
            path, normal_form=form, columns=columns, file_format=given.get("file_format")
        )

    pairs = read(data)
    if "dev" in given:
        held_out = read(given["dev"])
    else:
        if len(pairs.references()) == 1:
            raise InputError(
                explain(
                    f"{data}: there is one source, and none besides to hold out",
                    expected="two different sources at least, or --dev",
                    got=f"{len(pairs)} pairs of one source",
                    help=f"--dev FILE names held-out pairs; --dev {as_argument(data)} learns "
                    "these by heart",
                )
            )
        pairs, held_out = pairs.split(held_out_count(pairs), seed=seed)
    tested = read(given["test"]) if "test" in given else None
    return Task(pairs, held_out, tested, _settings(pairs, form, seed, given))


def _settings(pairs: "Pairs", form: str, seed: int, given: dict[str, Any]) -> "JobSettings":
    from regard.seq2seq.recipes.pairs import settings_for

    names = {"hidden": "d_hidden", "state": "d_s"}
    direct = ("attention", "steps", "epochs", "batch_tokens", "dropout", "hidden", "state")
    settings = settings_for(
        pairs,
        seed=seed,
        seconds=given.get("time_budget"),
        **{names.get(name, name): given[name] for name in direct if name in given},
    )
    symbols = given.get("symbols", "chars")
    model = dict(settings.model)
    model |= {entry: given[name] for name, entry in _MODEL.items() if name in given}
    if "one_direction" in given:
        model["bidirectional"] = False
        if given.get("attention") == "dot" and "state" not in given:
            model["d_s"] = model["d_hidden"]
    if "tied" in given:
        model["d_readout"] = model["d_in"]
    changes = {name: given[name] for name in _TRAINING if name in given}
    if "time_budget" in given:
        # As many steps as fit, unless a number of them was given too.
        changes |= {"evaluate_every": 0, "looks": given.get("looks", _LOOKS)}
        changes.setdefault("average", _AVERAGE)
        changes["steps"] = given.get("steps", 10**9)
    elif "looks" in given:
        changes["evaluate_every"] = max(1, settings.train.steps // given["looks"])
    return dataclasses.replace(
        settings,
        source_symbols=given.get("source_symbols", symbols),
        target_symbols=given.get("target_symbols", symbols),
        vocab_size=given.get("vocab_size", settings.vocab_size),
        normal_form=form,
        metric=given.get("metric", settings.metric),
        model=model,
        train=dataclasses.replace(settings.train, **changes),
    )


def _columns(given: dict[str, Any]) -> Any:
    none: dict[str, Any] = {
        "source_column": None,
        "target_column": (),
        "features_column": (),
        "header": None,
    }
    return chosen_columns(**{name: given.get(name, usual) for name, usual in none.items()})


def _refuse_together(**given: Any) -> None:
    """Refuse options that do not go together, by their own names."""
    if "steps" in given and "epochs" in given:
        raise InputError(
            explain(
                "--steps and --epochs both say how long to train",
                expected="one of the two",
                got=f"--steps {given['steps']} and --epochs {given['epochs']}",
                help="leave one out",
            )
        )
    if "no_nfc" in given and given.get("normal_form", "none") != "none":
        raise InputError(
            explain(
                "--no-nfc and --normal-form contradict each other",
                expected="one of the two",
                got=f"--no-nfc and --normal-form {given['normal_form']}",
                help="leave one out",
            )
        )
    if "time_budget" in given and "epochs" in given:
        raise InputError(
            explain(
                "--time-budget and --epochs both say how long to train",
                expected="one of the two",
                got="both",
                help="leave one out; --steps beside --time-budget is an upper limit",
            )
        )
    if "clock" in given and "time_budget" not in given:
        raise InputError(
            explain(
                "--clock has nothing to measure",
                expected="--time-budget beside it",
                got="no --time-budget",
                help="leave it out, or say how long to train",
            )
        )
    kinds = {
        given.get(side, given.get("symbols", "chars"))
        for side in ("source_symbols", "target_symbols")
    }
    if "vocab_size" in given and "subwords" not in kinds:
        raise InputError(
            explain(
                "--vocab-size has nothing to count",
                expected="--symbols subwords, --source-symbols or --target-symbols subwords",
                got=" and ".join(sorted(kinds)),
                because="other kinds of symbols are all that the data have",
                help="leave --vocab-size out, or cut a side into subwords",
            )
        )
    hidden = given.get("hidden", 96)
    needed = hidden if "one_direction" in given else 2 * hidden
    if given.get("attention") == "dot" and given.get("state", needed) != needed:
        said = "the same as" if "one_direction" in given else "twice"
        raise InputError(
            explain(
                "--state does not fit --hidden, which dot attention needs",
                expected=f"--state {needed}, {said} --hidden",
                got=f"--state {given['state']}",
                help="leave --state out, or use --attention general",
            )
        )


def warn_of_overlap(pairs: "Pairs", others: dict[str, Any]) -> None:
    """Say on stderr how many sources of other data are trained on."""
    trained = pairs.references().keys()
    for flag, other in others.items():
        sources = other.references().keys() if other is not None else ()
        shared = sum(source in trained for source in sources)
        if shared:
            click.echo(
                f"warning: {shared} of the {len(sources)} sources of {flag} are trained on",
                err=True,
            )
