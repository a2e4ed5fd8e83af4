"""``regard show``: alignments as a page to explore or as one picture."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from regard.cli.example import ExampleCommand
from regard.cli.options import Where
from regard.cli.streams import say
from regard.errors import InputError, explain
from regard.files import as_argument

if TYPE_CHECKING:
    from regard.alignment.collection import Collection
    from regard.alignment.record import Record

__all__ = ["show"]

_PICTURES = click.Choice(["map", "heads", "curves"])
_SUFFIXES = (".html", ".svg", ".png", ".pdf")

_EXAMPLE = """
regard predict my-model ATTENTION ALIGN --format json --align > looked.jsonl
regard show looked.jsonl                                       # writes looked.html
regard show before.npz after.npz --out compared.html
regard show looked.jsonl --sentence 2 --out second.svg
regard show looked.npz --sentence 1 --layer 3 --picture heads --out heads.pdf
regard show my-model pairs.tsv --counterfactuals               # writes pairs.html
regard show before after words.txt --own --out compared.html
"""


class _Head(click.ParamType):  # type: ignore[type-arg]  # generic in newer clicks only
    """A head's number, or the mean of all."""

    name = "number|mean"

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> "int | Literal['mean']":
        if value == "mean":
            return "mean"
        return _number("--head", value, "a head's number from 0, or mean")


class _Layer(click.ParamType):  # type: ignore[type-arg]
    """A layer's number."""

    name = "number"

    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        return _number("--layer", value, "a layer's number from 0")


@click.command(cls=ExampleCommand, example=_EXAMPLE)
@click.argument("files", nargs=-1, required=True, type=Where(no_dash=True), metavar="FILE...")
@click.option(
    "-o", "--out", type=Where(no_dash=True), help="Ends in .html, .svg, .png or .pdf."
)
@click.option("--picture", "kind", type=_PICTURES, help="For pictures; default map.")
@click.option("--sentence", help="Only the sentence of this name.")
@click.option("--model", help="Only this model.")
@click.option("--layer", type=_Layer(), help="Only this layer.")
@click.option("--head", type=_Head(), help="Only this head; mean for a map of all.")
@click.option(
    "--counterfactuals",
    is_flag=True,
    help="With a model: also what it would have written with other weights.",
)
@click.option("--own", is_flag=True, help="With a model: sources alone, and its own answers.")
@click.option("--title", help="Stands above; default the file's name.")
@click.option("--force", is_flag=True, help="Write over the file --out.")
def show(
    *,
    files: tuple[str, ...],
    out: str | None,
    kind: str | None,
    sentence: str | None,
    model: str | None,
    layer: int | None,
    head: "int | Literal['mean'] | None",
    counterfactuals: bool,
    own: bool,
    title: str | None,
    force: bool,
) -> int:
    """Show the alignments in FILE... (.json, .jsonl, .npz or .npy).

    By default writes one HTML page beside where you are: choose sentence, layer and head, point
    at words, compare models, draw links above a threshold. It opens offline. An --out that ends
    in .svg, .png or .pdf gives one picture of one sentence instead: a heat map, all heads, or
    curves of where each step looks and how widely.

    Several files are shown together: a file whose records name no model is called by its name,
    and sentences of one name are compared.

    Model directories, and then a text of lines source<TAB>target, show where the models look
    while they are made to write each target; with --own, a text of sources, where they look for
    their own answers. --counterfactuals adds what each step would have written with weights
    permuted, made uniform, or taken from one position.
    """
    models = _models(files, counterfactuals=counterfactuals, own=own)
    target = _target(out, files[-1] if models else files[0], kind, head, force)
    if models:
        from regard.cli.show_models import looked

        found = looked(models, files[-1], own=own, changed=counterfactuals)
    else:
        found = _read(files)
    collection = _chosen(found, sentence=sentence, model=model)
    command = _command(
        files=files,
        out=out,
        picture=kind,
        sentence=sentence,
        model=model,
        layer=layer,
        head=head,
        counterfactuals=counterfactuals or None,
        own=own or None,
        title=title,
    )
    if target.suffix.lower() == ".html":
        from regard.alignment.explorer import explorer
        from regard.files import write_atomically

        cut = collection.slice(
            layers=None if layer is None else [layer],
            heads=[head] if isinstance(head, int) else None,
        )
        page = explorer(
            cut,
            title=title or target.stem if models else title or Path(files[0]).stem,
            made=command,
        )
        write_atomically(target, page.encode("utf-8"))
        say(f"{target}  {_told(cut)}")
        return 0
    from typing import cast

    from regard.alignment.pictures import Picture, picture

    record = _single(collection)
    named = title or ", ".join(filter(None, (record.name, record.model)))
    _, missing = picture(
        target,
        record,
        kind=cast("Picture", kind or "map"),
        layer=layer,
        head=head,
        title=named,
    )
    if missing:
        shown = " ".join(missing[:20]) + (" ..." if len(missing) > 20 else "")
        click.echo(
            f"warning: no installed font has {shown}: they are boxes; "
            "an .svg map is drawn with the viewer's fonts",
            err=True,
        )
    say(str(target))
    return 0


def _models(files: Sequence[str], *, counterfactuals: bool, own: bool) -> Sequence[str]:
    """Return the models among the files: all but the last, if the first is a directory."""
    if Path(files[0]).is_dir():
        if len(files) > 1:
            return files[:-1]
        raise InputError(
            explain(
                f"{files[0]}: this is a directory",
                expected="a file of alignments, or a model and a text for it to write",
                got="a directory alone",
                help=f"regard show {shlex.quote(files[0])} pairs.tsv",
            )
        )
    for option, given in (("--counterfactuals", counterfactuals), ("--own", own)):
        if given:
            raise InputError(
                explain(
                    f"{option} asks a model",
                    expected="a model directory, and then a text",
                    got=files[0],
                    help="what a file has of them is shown without it",
                )
            )
    return ()


def _read(files: Sequence[str]) -> "Collection":
    from dataclasses import replace

    from regard.alignment.collection import Collection
    from regard.alignment.collection_files import read_collection

    records: list[Record] = []
    for name in files:
        for record in read_collection(name):
            model = record.model or (Path(name).stem if len(files) > 1 else "")
            records.append(replace(record, model=model))
    return Collection(records)


def _chosen(
    collection: "Collection", *, sentence: str | None, model: str | None
) -> "Collection":
    from regard.alignment.collection import Collection

    kept = list(collection)
    for option, wanted, key in (("--sentence", sentence, "name"), ("--model", model, "model")):
        if wanted is None:
            continue
        known = list(dict.fromkeys(getattr(record, key) for record in kept))
        kept = [record for record in kept if getattr(record, key) == wanted]
        if not kept:
            shown = ", ".join(map(repr, known[:20])) + (" ..." if len(known) > 20 else "")
            raise InputError(
                explain(
                    f"{option}: there is none", expected=f"one of {shown}", got=repr(wanted)
                )
            )
    return Collection(kept)


def _single(collection: "Collection") -> "Record":
    if len(collection) == 1:
        return collection[0]
    several_models = len({record.name for record in collection}) == 1
    option = "--model" if several_models else "--sentence"
    names = collection.models if several_models else [record.name for record in collection]
    known = list(dict.fromkeys(names))
    shown = ", ".join(map(repr, known[:20])) + (" ..." if len(known) > 20 else "")
    raise InputError(
        explain(
            "a picture shows one sentence of one model",
            expected=f"{option} with one of {shown}",
            got=f"{len(collection)} records",
            help="an --out that ends in .html shows all of them",
        )
    )


def _target(out: str | None, first: str, kind: str | None, head: object, force: bool) -> Path:
    target = Path(out) if out is not None else Path(Path(first).stem + ".html")
    suffix = target.suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(
            explain(
                f"--out: {target} is refused",
                expected=f"a name that ends in {', '.join(_SUFFIXES)}",
                got=suffix or "no suffix",
            )
        )
    if suffix == ".html" and (kind is not None or head == "mean"):
        option = "--picture" if kind is not None else "--head mean"
        raise InputError(
            explain(
                f"{option} is for pictures",
                expected="an --out that ends in .svg, .png or .pdf",
                got=str(target),
                help="the page has all of it: leave the option out",
            )
        )
    if kind == "heads" and head is not None:
        raise InputError(
            explain(
                "--head does not go with --picture heads",
                expected="one of the two",
                got=f"--head {head}",
            )
        )
    if target.exists() and not force:
        raise InputError(
            explain(
                f"{target}: the file exists",
                expected="a new name",
                got="an existing file",
                help="--force writes over it; --out takes another name",
            )
        )
    return target


def _told(collection: "Collection") -> str:
    sentences = len({record.name for record in collection})
    parts = [(sentences, "sentence"), (len(collection.models), "model")]
    parts += [
        (max(len(record.layers) for record in collection), "layer"),
        (max(len(record.heads) for record in collection), "head"),
    ]
    return ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in parts)


def _command(*, files: Sequence[str], **options: object) -> str:
    words = []
    for name, value in options.items():
        if value is True:
            words.append(f"--{name}")
        elif value is not None:
            words += [f"--{name}", str(value)]
    return " ".join(["regard show", *map(as_argument, files), *map(shlex.quote, words)])


def _number(option: str, value: object, expected: str) -> int:
    text = str(value)
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InputError(
            explain(f"{option}: {text[:40]} is refused", expected=expected, got=text[:40])
        )
    return int(text)
