"""An aligner's directory: what it was trained on and how, its words, and what it has learned.

=====================  ================================================================
``aligner.json``       settings, and the command, version and corpus that made it
``words.json``         the words of both sides
``model.safetensors``  attention, lexicons, and what a run needs to go on
``log.csv``            the likelihood after each pass
=====================  ================================================================

The last two are replaced, each in one atomic step, after every pass.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.aligner.settings import AlignerSettings
from regard.errors import InputError, explain
from regard.files import read_json, write_atomically, write_json
from regard.seq2seq.tensors import load_tensors, save_tensors
from regard.version import __version__

__all__ = ["FILES", "About", "Learned", "is_aligner", "load_about", "load_learned", "save"]

FILES = ("aligner.json", "words.json", "model.safetensors", "log.csv")
"""All that a run writes; the first one says whose the directory is."""

_KIND = "regard aligner"
_FORMAT = 1


@dataclass(frozen=True)
class About:
    """What an aligner is, apart from what it learned.

    Parameters
    ----------
    settings : AlignerSettings
    corpus : mapping
        ``name``, ``pairs`` and ``sha256`` of what it was trained on.
    made_by : mapping
        Command and versions, for people.
    source, target : list of str
        The words of both sides, in the order of their numbers.
    """

    settings: AlignerSettings
    corpus: Mapping[str, Any]
    made_by: Mapping[str, Any]
    source: list[str]
    target: list[str]


@dataclass(frozen=True)
class Learned:
    """What was learned, and how far the run is.

    Parameters
    ----------
    tensors : mapping of str to Tensor
        As :meth:`regard.aligner.model.Aligner.state` returns them.
    chain : bool
        Whether choices depend on the one before by now.
    seconds : float
        Spent so far, all sittings together.
    done : bool
        Whether the run is over.
    log : list of (seconds, likelihood)
        One entry a pass; nats a word.
    """

    tensors: Mapping[str, Tensor]
    chain: bool
    seconds: float
    done: bool
    log: list[tuple[float, float]] = field(default_factory=list)


def is_aligner(directory: Path) -> bool:
    """Return whether a directory holds an aligner, finished or not."""
    try:
        form = read_json(directory / FILES[0])
    except InputError:
        return False
    return isinstance(form, dict) and form.get("kind") == _KIND


def save(directory: Path, about: About, learned: Learned | None = None) -> None:
    """Write what an aligner is; with ``learned`` only that.

    Raises
    ------
    InputError
        The directory cannot be written to.
    """
    if learned is None:
        write_json(directory / FILES[1], {"source": about.source, "target": about.target})
        head = {"kind": _KIND, "format": _FORMAT, "regard": __version__}
        head |= {"settings": about.settings.to_json(), "corpus": dict(about.corpus)}
        write_json(directory / FILES[0], {**head, "made_by": dict(about.made_by)})
        return
    info = {"mark": _mark(about), "chain": learned.chain, "done": learned.done}
    info |= {"seconds": learned.seconds, "log": [list(entry) for entry in learned.log]}
    save_tensors(directory / FILES[2], learned.tensors, info)
    rows = [f"{n},{s:.2f},{value:.6f}\n" for n, (s, value) in enumerate(learned.log, 1)]
    text = "pass,seconds,likelihood\n" + "".join(rows)
    write_atomically(directory / FILES[3], text.encode())


def load_about(directory: Path) -> About:
    """Read what an aligner is.

    Raises
    ------
    InputError
        There is none, or a file is damaged or of another format; the text names the file.
    """
    path = directory / FILES[0]
    if not path.exists():
        raise InputError(
            explain(
                f"{directory}: there is no aligner in it",
                expected="a directory that `regard align train --out` wrote",
                got="one without aligner.json" if directory.is_dir() else "no directory",
                help="check the path, or train an aligner first",
            )
        )
    form, words = read_json(path), read_json(directory / FILES[1])
    try:
        if (form["kind"], form["format"]) != (_KIND, _FORMAT):
            raise ValueError(f"{form['kind']}, format {form['format']}")
        sides = (words["source"], words["target"])
        if not all(isinstance(word, str) for side in sides for word in side):
            raise TypeError("words that are no strings")
        settings = AlignerSettings.from_json(form["settings"])
        return About(settings, dict(form["corpus"]), dict(form["made_by"]), *sides)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            explain(
                f"{path} or {FILES[1]}: this is not as regard {__version__} writes it",
                expected=f"{_KIND}, format {_FORMAT}",
                got=f"{type(error).__name__}: {error}".splitlines()[0],
                help="use the version that wrote it, or train again",
            )
        ) from error


def load_learned(directory: Path, about: About) -> Learned | None:
    """Read what an aligner has learned; None where its first pass was never finished.

    Raises
    ------
    InputError
        The file is damaged, or of another run than the rest.
    """
    path = directory / FILES[2]
    if not path.exists():
        return None
    tensors, info = load_tensors(path)
    if info.get("mark") != _mark(about):
        raise InputError(
            explain(
                f"{path}: this belongs to another {FILES[0]} or {FILES[1]}",
                expected="files of one run",
                got="files of two runs",
                help="copy the whole directory again, or train again",
            )
        )
    log = [(float(s), float(value)) for s, value in info["log"]]
    return Learned(tensors, info["chain"], info["seconds"], info["done"], log)


def _mark(about: About) -> str:
    form = [about.settings.to_json(), dict(about.corpus), about.source, about.target]
    return hashlib.sha256(json.dumps(form, sort_keys=True).encode()).hexdigest()
