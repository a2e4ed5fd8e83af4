"""The file of an exported model: a header and named arrays in one ``.npz``.

NumPy reads it with ``allow_pickle=False``, so nothing in it is ever run. The entry ``header``
holds UTF-8 JSON as bytes; the others are arrays under the names of the trained model's weights,
in an order of no meaning:

==================================  ======================================================
``format``                          1; a reader refuses others
``regard``                          version that wrote it
``made_by``                         command, seed, settings and data of the training
``model``                           the model's configuration, of an ensemble the first one's
``members``                         of an ensemble the configurations of all; weights are then
                                    named with a number and ``/`` before
``source``, ``target``              the vocabularies
``longest_source``/``_target``      in training, in symbols
``numbers``                         float32, float16 or int8
``sha256``                          of all else: header and arrays
==================================  ======================================================
"""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import InputError, RegardError, explain
from regard.files import unreadable
from regard.npz import NoArraysError, arrays_of
from regard.seq2seq.architecture import ModelConfig
from regard.seq2seq.description import Description
from regard.seq2seq.runtime.cells import Floats
from regard.seq2seq.runtime.numbers import stored, unstored
from regard.seq2seq.vocab import Vocab
from regard.version import __version__

__all__ = [
    "FORMAT",
    "Exported",
    "described",
    "digest_of",
    "exported_bytes",
    "exported_of",
    "header_of",
    "read_exported",
]

FORMAT = 1

_HEADER = "header"


@dataclass(frozen=True)
class Exported:
    """What an exported file holds."""

    description: Description
    configs: tuple[ModelConfig, ...]
    """One, or one for each member of an ensemble."""

    weights: dict[str, Floats]
    numbers: str


def header_of(description: Description) -> dict[str, Any]:
    """Return the description as JSON values."""
    return {
        "format": FORMAT,
        "regard": __version__,
        "made_by": description.made_by,
        "model": description.model.to_json(),
        "source": description.source.to_json(),
        "target": description.target.to_json(),
        "longest_source": description.longest_source,
        "longest_target": description.longest_target,
    }


def described(header: Mapping[str, Any]) -> Description:
    """Return the description of a header.

    Raises
    ------
    InputError
        The header says something that no description has.
    KeyError, TypeError
        It lacks an entry, or one has the wrong type.
    """
    return Description(
        ModelConfig.from_json(header["model"]),
        Vocab.from_json(header["source"]),
        Vocab.from_json(header["target"]),
        int(header["longest_source"]),
        int(header["longest_target"]),
        dict(header["made_by"]),
    )


def exported_bytes(
    description: Description,
    weights: Mapping[str, Floats],
    numbers: str = "float32",
    *,
    configs: Sequence[ModelConfig] = (),
) -> bytes:
    """Return the content of the file.

    Parameters
    ----------
    description : Description
    weights : mapping
        float32, under the names of ``state_dict()``.
    numbers : {"float32", "float16", "int8"}
    configs : sequence of ModelConfig
        Of an ensemble's members, whose weights are named with a number and ``/`` before.
    """
    arrays = stored(weights, numbers)
    header = {**header_of(description), "numbers": numbers}
    if configs:
        header["members"] = [config.to_json() for config in configs]
    header["sha256"] = digest_of(header, arrays)
    text = json.dumps(header, ensure_ascii=False).encode("utf-8")
    stream = io.BytesIO()
    entries: dict[str, Any] = {_HEADER: np.frombuffer(text, dtype=np.uint8), **arrays}
    np.savez_compressed(stream, **entries)
    return stream.getvalue()


def read_exported(path: str | Path) -> Exported:
    """Read the file.

    Raises
    ------
    InputError
        It is missing, damaged, of another format or another program's.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            unreadable(
                path,
                error,
                expected="a file as `regard export --to numpy` writes it",
                missing="check the path, or export a model first",
            )
        ) from error
    return exported_of(data, path)


def exported_of(data: bytes, path: Path) -> Exported:
    """Read the content of the file; ``path`` is what errors call it.

    Raises
    ------
    InputError
        It is damaged, of another format or another program's.
    """
    try:
        arrays = arrays_of(data)
    except NoArraysError as error:
        raise _damaged(path, str(error)) from error
    header = _header(path, arrays)
    if header["format"] != FORMAT:
        raise InputError(
            explain(
                f"{path}: the file is of another format",
                expected=f"format {FORMAT}, which regard {__version__} reads",
                got=f"format {header['format']!r}, written by regard {header.get('regard')}",
                help="use that version, or export again",
            )
        )
    if header.pop("sha256", None) != digest_of(header, arrays):
        raise _damaged(path, "a check sum that does not match its content")
    try:
        description, numbers = described(header), header["numbers"]
        forms = header.get("members", [header["model"]])
        configs = tuple(ModelConfig.from_json(form) for form in forms)
    except RegardError as error:
        raise InputError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, f"a header with a wrong or missing entry: {error}") from error
    weights = unstored(arrays)
    for name, value in weights.items():
        if not np.isfinite(value).all():
            raise _damaged(path, f"weights `{name}` that are no finite numbers")
    return Exported(description, configs, weights, numbers)


def _header(path: Path, arrays: dict[str, NDArray[np.generic]]) -> dict[str, Any]:
    """Take the header out of what was read."""
    found = arrays.pop(_HEADER, None)
    try:
        header = json.loads(b"" if found is None else found.tobytes())
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or "format" not in header:
        raise InputError(
            explain(
                f"{path}: this is not an exported model",
                expected="a file as `regard export --to numpy` writes it",
                got="an .npz file of another program",
            )
        )
    return header


def digest_of(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the sha256 of JSON values and named arrays, in hexadecimal."""
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode("utf-8"))
    for name in sorted(arrays):
        value = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {value.dtype.str} {value.shape}\n".encode())
        digest.update(value.tobytes())
    return digest.hexdigest()


def _damaged(path: Path, got: str) -> InputError:
    return InputError(
        explain(
            f"{path}: the file is damaged, or no exported model",
            expected="a whole file as `regard export --to numpy` writes it",
            got=got,
            help="copy it again, or export again",
        )
    )
