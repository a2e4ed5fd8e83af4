"""A model directory: what a model is, what made it, and what a run needs to go on.

=======================  ==============================================================
``config.json``          the model's shape, and the command, version, seed and data
``vocab.json``           the symbols of both sides
``model.safetensors``    the weights, the best ones so far
``training.safetensors`` for resuming: weights, optimizer and counters of the last save
``training.json``        the counters and the history again, for people to read
``log.csv``              loss, learning rate and held-out error rates over the steps
=======================  ==============================================================

Each file is replaced in one atomic step, the state before the weights: a run that is killed
between the two writes the weights again when it is taken up. ``model.safetensors`` carries a
mark of the ``config.json`` and ``vocab.json`` it was trained with, so files of two runs do not
mix.
"""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from regard.errors import InputError, RegardError, explain
from regard.files import read_json, write_json
from regard.seq2seq.description import Description
from regard.seq2seq.model import ModelConfig, Seq2Seq
from regard.seq2seq.tensors import load_tensors, save_tensors
from regard.seq2seq.train import TrainingState
from regard.seq2seq.vocab import Vocab
from regard.version import __version__

__all__ = [
    "FILES",
    "FORMAT",
    "Description",
    "is_run",
    "load_description",
    "load_model",
    "load_training",
    "save_description",
    "save_training",
    "save_training_info",
    "save_weights",
]

FORMAT = 1
"""Of the directory; a reader refuses others."""

FILES = (
    "config.json",
    "vocab.json",
    "model.safetensors",
    "training.safetensors",
    "training.json",
    "log.csv",
)

_T = TypeVar("_T")


def save_description(directory: Path, description: Description) -> None:
    """Write ``config.json`` and ``vocab.json``."""
    config = {
        "format": FORMAT,
        "regard": __version__,
        "made_by": description.made_by,
        "model": description.model.to_json(),
        "longest_source": description.longest_source,
        "longest_target": description.longest_target,
    }
    vocab = {"source": description.source.to_json(), "target": description.target.to_json()}
    write_json(directory / "vocab.json", vocab)
    write_json(directory / "config.json", config)


def save_weights(directory: Path, description: Description, weights: dict[str, Tensor]) -> None:
    """Write ``model.safetensors``."""
    save_tensors(directory / "model.safetensors", weights, {"mark": _mark(description)})


def save_training(directory: Path, state: TrainingState) -> None:
    """Write ``training.safetensors``, and ``training.json`` for people."""
    save_tensors(directory / "training.safetensors", state.tensors, state.info)
    save_training_info(directory, state)


def save_training_info(directory: Path, state: TrainingState) -> None:
    """Write ``training.json`` alone."""
    # Sorted, so that a state that was read makes the same file.
    write_json(directory / "training.json", json.loads(json.dumps(state.info, sort_keys=True)))


def load_description(directory: str | Path) -> Description:
    """Read ``config.json`` and ``vocab.json``.

    Raises
    ------
    InputError
        One is missing, damaged or of another format; the text names the file.
    """
    directory = Path(directory)
    if not directory.is_dir():
        is_file = directory.exists()
        raise InputError(
            explain(
                f"{directory}: this is a file, not a directory"
                if is_file
                else f"{directory}: there is no such directory",
                expected="a model directory, as `regard train --out` writes it",
                got="a file" if is_file else "nothing",
                help=f"if it is one of a model's files, name {directory.parent}"
                if is_file and directory.name in FILES
                else "check the path, or train a model first",
            )
        )
    path = directory / "config.json"
    config = read_json(path)
    if not isinstance(config, dict) or "format" not in config:
        raise _foreign(path, "no entry `format`")
    if config["format"] != FORMAT:
        raise InputError(
            explain(
                f"{path}: the model is of another format",
                expected=f"format {FORMAT}, which regard {__version__} reads",
                got=f"format {config['format']!r}, written by regard {config.get('regard')}",
                help="use that version, or train again",
            )
        )
    vocab_path = directory / "vocab.json"
    vocab = read_json(vocab_path)
    if not isinstance(vocab, dict) or set(vocab) != {"source", "target"}:
        raise _foreign(vocab_path, "no entries `source` and `target`")
    source = _within(vocab_path, lambda: Vocab.from_json(vocab["source"]))
    target = _within(vocab_path, lambda: Vocab.from_json(vocab["target"]))
    wanted = {"made_by": dict, "longest_source": int, "longest_target": int}
    for name, kind in wanted.items():
        if type(config.get(name)) is not kind:
            raise _foreign(path, f"no entry `{name}` of type {kind.__name__}")
    return _within(
        path,
        lambda: Description(
            ModelConfig.from_json(config.get("model")),
            source,
            target,
            config["longest_source"],
            config["longest_target"],
            config["made_by"],
        ),
    )


def is_run(directory: Path) -> bool:
    """Return whether a directory holds a run that :func:`save_description` began."""
    for name, keys in (
        ("config.json", {"format", "regard", "made_by", "model"}),
        ("vocab.json", {"source", "target"}),  # written first: a run may have only this
    ):
        path = directory / name
        if path.exists():
            try:
                form = read_json(path)
            except InputError:
                return False
            return isinstance(form, dict) and keys <= set(form)
    return False


def load_model(directory: str | Path) -> tuple[Seq2Seq, Description]:
    """Read a model, ready for use: dropout off, on the CPU.

    Raises
    ------
    InputError
        A file is missing, damaged, of another format or of another run, or a weight is no
        finite number; the text names the file.
    """
    description = load_description(directory)
    path = Path(directory) / "model.safetensors"
    tensors, info = load_tensors(path)
    if info.get("mark") != _mark(description):
        raise InputError(
            explain(
                f"{path}: the weights belong to another config.json or vocab.json",
                expected="files of one run",
                got="files of two runs",
                help="copy the whole directory again, or train again",
            )
        )
    model = Seq2Seq(description.model)
    _check_weights(path, tensors, model.state_dict())
    model.load_state_dict(tensors)
    return model.eval(), description


def load_training(directory: str | Path) -> TrainingState:
    """Read what a run needs to go on.

    Raises
    ------
    InputError
        The file is missing or damaged.
    """
    path = Path(directory) / "training.safetensors"
    tensors, info = load_tensors(path)
    _check_finite(path, tensors)
    return TrainingState(tensors, info)


def _check_weights(path: Path, found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    for name in sorted(found.keys() ^ wanted.keys()):
        raise InputError(
            explain(
                f"{path}: `{name}` is {'missing' if name in wanted else 'too many'}",
                expected=f"the {len(wanted)} weights of the model in config.json",
                got=f"{len(found)} weights",
                help="copy the whole directory again, or train again",
            )
        )
    for name, value in wanted.items():
        if found[name].shape != value.shape or found[name].dtype != value.dtype:
            raise InputError(
                explain(
                    f"{path}: `{name}` has the wrong shape or number type",
                    expected=f"{tuple(value.shape)} of {value.dtype}",
                    got=f"{tuple(found[name].shape)} of {found[name].dtype}",
                    because="config.json says so",
                    help="copy the whole directory again, or train again",
                )
            )
    _check_finite(path, found)


def _check_finite(path: Path, tensors: dict[str, Tensor]) -> None:
    for name, value in tensors.items():
        bad = int((~torch.isfinite(value)).sum())
        if bad:
            raise InputError(
                explain(
                    f"{path}: `{name}` has weights that are no finite number",
                    expected="finite numbers",
                    got=f"{bad} of {value.numel()} NaN or infinite",
                    help="train again with a smaller learning rate",
                )
            )


def _mark(description: Description) -> str:
    form = [
        description.model.to_json(),
        description.source.to_json(),
        description.target.to_json(),
        description.made_by,
    ]
    return hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()


def _within(path: Path, make: Callable[[], _T]) -> _T:
    """Say which file an error comes from."""
    try:
        return make()
    except RegardError as error:
        first, _, rest = str(error).partition("\n")
        raise InputError(f"{path}: {first}\n{rest}") from error


def _foreign(path: Path, got: str) -> InputError:
    return InputError(
        explain(
            f"{path}: this is not a file of a regard model",
            expected=f"a {path.name} as `regard train --out` writes it",
            got=got,
        )
    )
