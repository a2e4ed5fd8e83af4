"""From a trained model to the files of an exported one, checked against it."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from regard.errors import InputError, explain
from regard.seq2seq.description import Description
from regard.seq2seq.ensemble import Ensemble
from regard.seq2seq.export.agreement import Agreement, agreement, made_up, require_agreement
from regard.seq2seq.export.measure import Speed, speed_of
from regard.seq2seq.export.weights import single, weights_of
from regard.seq2seq.metrics import ErrorRates
from regard.seq2seq.model import Seq2Seq
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.rates import rates_of
from regard.seq2seq.runtime.exported import exported_bytes, exported_of
from regard.seq2seq.runtime.model import model_of
from regard.seq2seq.runtime.transducer import NUMPY_FILE, NumpyTransducer
from regard.seq2seq.transducer import Transducer

__all__ = ["FORMS", "Export", "export_model", "shipped"]

FORMS = {"numpy": (NUMPY_FILE,), "onnx": ("encoder.onnx", "step.onnx", "greedy.onnx")}
"""What a model can become, and the files that it then is."""

_TIMED = 512  # sources that a speed is taken from


@dataclass(frozen=True)
class Export:
    """An exported model and what is known of it.

    Attributes
    ----------
    to : {"numpy", "onnx"}
    numbers : {"float32", "float16", "int8"}
        How the weights are stored.
    files : dict
        Name -> content.
    agreement : Agreement
    compared : str
        What the agreement was found on.
    speed, trained_speed : Speed
        Of the exported and of the trained model, in this run.
    rates, trained_rates : ErrorRates or None
        On the pairs that were given, greedy.
    weights : int
        Numbers that the model has.
    members : int
        Models that answer together; 1 but for an ensemble.
    """

    to: str
    numbers: str
    files: dict[str, bytes]
    agreement: Agreement
    compared: str
    speed: Speed
    trained_speed: Speed
    rates: ErrorRates | None
    trained_rates: ErrorRates | None
    weights: int
    members: int


def export_model(
    trained: Transducer,
    name: str,
    *,
    to: str = "numpy",
    numbers: str = "float32",
    pairs: Pairs | None = None,
) -> Export:
    """Make the files, read them back and compare.

    Parameters
    ----------
    trained : Transducer
    name : str
        What errors call it.
    to : {"numpy", "onnx"}
    numbers : {"float32", "float16", "int8"}
        How to store the weights; ``onnx`` has float32 only.
    pairs : Pairs, optional
        What to compare and score on; else 256 made-up sources are compared.

    Returns
    -------
    export : Export
        The files, and how far they agree with the trained model.

    Raises
    ------
    InputError
        The model is what ``to`` cannot have; or exact numbers do not agree with the trained
        model.
    """
    if to not in FORMS:
        raise _refused("to", " or ".join(FORMS), to)
    if to == "onnx" and numbers != "float32":
        raise _refused("numbers", "float32, which is all that onnx is written with", numbers)
    model = trained.model if to == "numpy" else single(trained.model, name)
    description = shipped(trained.description)
    trained = Transducer(model, description)
    exported: NumpyTransducer
    if to == "numpy":
        several = [m.config for m in model.members] if isinstance(model, Ensemble) else []
        data = exported_bytes(description, weights_of(model), numbers, configs=several)
        files = {FORMS[to][0]: data}
        read = exported_of(data, Path(FORMS[to][0]))
        exported = NumpyTransducer(model_of(read.configs, read.weights), read.description)
    else:
        from regard.seq2seq.export.onnx_files import onnx_files  # noqa: PLC0415 - an extra

        assert isinstance(model, Seq2Seq)  # a single one, as was seen to
        files, exported = onnx_files(model, description)
    sources = made_up(description)
    compared = f"{len(sources)} made-up sources"
    if pairs is not None:
        texts = list(pairs.references())
        sources = [ids for ids in map(description.source.encode, texts) if ids]
        compared = f"{len(sources):,} sources of {Path(pairs.name).name}"
    torch.set_num_threads(1)
    found = agreement(trained, exported, sources)
    if numbers == "float32":
        require_agreement(name, found)
    timed = sources[:: max(1, len(sources) // _TIMED)]
    return Export(
        to=to,
        numbers=numbers,
        files=files,
        agreement=found,
        compared=compared,
        speed=speed_of(exported, timed),
        trained_speed=speed_of(trained, timed),
        rates=None if pairs is None else rates_of(exported, pairs),
        trained_rates=None if pairs is None else rates_of(trained, pairs),
        weights=sum(parameter.numel() for parameter in model.parameters()),
        members=len(model.members) if isinstance(model, Ensemble) else 1,
    )


def shipped(description: Description) -> Description:
    """Return a description that does not say where things lay on the machine that trained."""
    made_by = {name: value for name, value in description.made_by.items() if name != "command"}
    for name, value in made_by.items():
        if isinstance(value, dict) and isinstance(value.get("name"), str):
            made_by[name] = {**value, "name": Path(value["name"]).name}
    return replace(description, made_by=made_by)


def _refused(name: str, expected: str, got: str) -> InputError:
    return InputError(
        explain(f"export_model(): `{name}` is refused", expected=expected, got=repr(got)[:80])
    )
