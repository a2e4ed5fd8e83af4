"""Reading and writing collections: JSON, JSON lines and NPZ.

``.json``
    An object with the list ``records``, as :func:`write_collection` writes it with every digit;
    or one alignment, as :meth:`regard.alignment.Alignment.to_json` writes it.
``.jsonl``
    One record a line: so `regard predict --format json --align` prints them.
``.npy``
    One array as `numpy.save` writes it, ``weights`` alone; it can be read only.
``.npz``
    Arrays ``weights_0``, ``weights_1`` ... and all else as JSON text in ``header``. A file of
    someone else's needs ``weights`` with two to four axes; arrays of strings ``target`` and
    ``source`` name the tokens, and positions do where there are none. Nothing is unpickled.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regard.alignment.collection import Collection
from regard.alignment.collection_arrays import Numbers, array_form, npz_arrays, own_form
from regard.alignment.counterfactual import ByPosition, Counterfactual
from regard.alignment.record import Record
from regard.errors import InputError, RegardError, explain
from regard.files import unreadable, write_atomically

__all__ = ["SUFFIXES", "check_suffix", "read_collection", "write_collection"]

SUFFIXES = (".json", ".jsonl", ".npz")
"""What a file of alignments may be called; the suffix decides how it is written."""
_ARRAY = ".npy"  # read, not written: it has no place for tokens
_KIND = "regard alignments"
_VERSION = 1
_TOKENS = (("source", "source_symbols"), ("target", "target_symbols"))


def read_collection(path: Path | str) -> Collection:
    """Read a file of alignments.

    Parameters
    ----------
    path : path
        Its suffix says the format: one of :data:`SUFFIXES`, or ``.npy``.

    Returns
    -------
    collection : Collection
        Records without a name are called by their place, from 1.

    Raises
    ------
    InputError, ShapeError, BackendError
        It cannot be read, is malformed, or holds what is no alignment. The text names the file
        and the line or the record.
    """
    path = Path(path)
    suffix = check_suffix(path, _ARRAY)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(
            unreadable(
                path,
                error,
                expected="a file of alignments",
                missing="`regard predict MODEL TEXT --format json --align` prints one",
            )
        ) from error
    if suffix == _ARRAY:
        entries = iter([(str(path), array_form(path, data))])
    elif suffix == ".npz":
        entries = _from_npz(path, data)
    else:
        entries = _from_text(path, data, suffix == ".jsonl")
    records = []
    for number, (where, form) in enumerate(entries, 1):
        try:
            records.append(_record(form, number))
        except RegardError as error:
            raise type(error)(f"{where}: {error}") from error
    if not records:
        raise InputError(
            explain(f"{path}: there is no alignment in it", expected="at least one", got="none")
        )
    try:
        return Collection(records)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def write_collection(
    path: Path | str, collection: Collection | Iterable[Record], *, force: bool = False
) -> Path:
    """Write a file that :func:`read_collection` reads back bit for bit.

    Parameters
    ----------
    path : path
        Its suffix says the format: one of :data:`SUFFIXES`.
    collection : Collection, or its records
    force : bool
        Whether to replace a file that is there.

    Returns
    -------
    path : Path
        Of the file.

    Raises
    ------
    InputError
        The file exists or cannot be written, or `made_by` holds what JSON cannot.
    """
    path, collection = Path(path), Collection(collection)
    suffix = check_suffix(path)
    if path.exists() and not force:
        raise InputError(
            explain(
                f"{path}: the file exists",
                expected="a new name",
                got="an existing file",
                help="force=True replaces it",
            )
        )
    if suffix == ".npz":
        heads = [_form(record) for record in collection]
        header = _dumped({"format": _KIND, "version": _VERSION, "records": heads})
        arrays: dict[str, Any] = {
            f"weights_{n}": record.weights for n, record in enumerate(collection)
        }
        arrays["header"] = np.array(header)
        stream = io.BytesIO()
        np.savez_compressed(stream, **arrays)
        data = stream.getvalue()
    else:
        forms = [{**_form(record), "weights": record.weights.tolist()} for record in collection]
        if suffix == ".jsonl":
            text = "\n".join(map(_dumped, forms))
        else:
            head = _dumped({"format": _KIND, "version": _VERSION})[:-1]
            # A record a line: the file can be looked at, and an editor can open it.
            text = head + ', "records": [\n' + ",\n".join(map(_dumped, forms)) + "\n]}"
        data = (text + "\n").encode("utf-8")
    write_atomically(path, data)
    return path


def _from_text(path: Path, data: bytes, lines: bool) -> Iterator[tuple[str, Any]]:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise _malformed(f"{path}:{line}", "UTF-8 text", str(error)) from error
    if lines:
        for number, line_text in enumerate(text.split("\n"), 1):
            if line_text.strip():
                yield f"{path}:{number}", _loaded(line_text, f"{path}:{number}")
        return
    form = _loaded(text, str(path))
    if isinstance(form, dict) and "records" in form:
        yield from _listed(path, form)
    elif isinstance(form, list):
        yield from _listed(path, {"records": form})
    else:
        yield str(path), form


def _listed(path: Path, form: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    version, records = form.get("version", _VERSION), form["records"]
    if version != _VERSION:
        raise InputError(
            explain(
                f"{path}: the file is of another version",
                expected=f"version {_VERSION}",
                got=f"version {version!r}"[:60],
                help="read it with the regard that wrote it, or a newer one",
            )
        )
    if not isinstance(records, list):
        raise _malformed(str(path), "`records`, a list", type(records).__name__)
    for number, record in enumerate(records, 1):
        yield f"{path}: record {number}", record


def _from_npz(path: Path, data: bytes) -> Iterator[tuple[str, Any]]:
    arrays = npz_arrays(path, data)
    if "header" in arrays:
        form = _loaded(str(arrays["header"]), f"{path}: header")
        if not isinstance(form, dict) or not isinstance(form.get("records"), list):
            raise _malformed(f"{path}: header", "an object with the list `records`", "another")
        for number, (where, record) in enumerate(_listed(path, form)):
            weights = arrays.get(f"weights_{number}")
            if weights is None or not isinstance(record, dict):
                raise _malformed(where, f"the array weights_{number}", ", ".join(arrays)[:200])
            yield where, {**record, "weights": Numbers(weights)}
        return
    if "weights" not in arrays:
        names = ", ".join(arrays)[:200] or "no array"
        raise _malformed(str(path), "an array `weights` (T_dec, T_enc), or `header`", names)
    yield str(path), own_form(arrays["weights"], arrays)


def _record(form: Any, number: int) -> Record:
    if not isinstance(form, Mapping) or "weights" not in form:
        got = ", ".join(map(str, form))[:200] if isinstance(form, Mapping) else "no object"
        help_ = "`regard predict` writes weights under --align" if "finished" in got else None
        raise InputError(
            explain(
                "the record has no weights",
                expected="an object with weights, target and source",
                got=got or "an empty object",
                help=help_,
            )
        )
    tokens = {}
    for side, symbols in _TOKENS:
        # `regard predict` has the text under one name and what the model read under another.
        tokens[side] = form.get(symbols, form.get(side))
        if tokens[side] is None:
            raise _malformed("the record", f"`{side}`, a list of tokens", "no such key")
    weights = form["weights"]
    changed = form.get("counterfactuals", {})
    if not isinstance(changed, Mapping):
        raise _malformed("`counterfactuals`", "an object", type(changed).__name__)
    made = form.get("made_by", {})
    if not isinstance(made, Mapping):
        raise _malformed("`made_by`", "an object", type(made).__name__)
    return Record(
        weights.array if isinstance(weights, Numbers) else weights,
        tokens["target"],
        tokens["source"],
        name=form.get("name", str(number)),
        model=form.get("model", ""),
        layers=form.get("layers"),
        heads=form.get("heads"),
        counterfactuals={name: _counterfactual(name, value) for name, value in changed.items()},
        made_by=made,
    )


def _counterfactual(name: str, form: Any) -> Counterfactual:
    if not isinstance(form, Mapping) or not {"target", "difference"} <= set(form):
        raise _malformed(
            f"the counterfactual {name!r}",
            "an object with target and difference",
            str(form)[:60],
        )
    places = form.get("positions")
    if places is not None and not (
        isinstance(places, Mapping) and {"target", "difference"} <= set(places)
    ):
        raise _malformed(
            f"the positions of the counterfactual {name!r}",
            "an object with target and difference",
            str(places)[:60],
        )
    return Counterfactual(
        form["target"],
        form["difference"],
        unaltered=form.get("unaltered"),
        how=form.get("how", ""),
        positions=None
        if places is None
        else ByPosition(places["target"], places["difference"]),
    )


def _form(record: Record) -> dict[str, Any]:
    form: dict[str, Any] = {
        "name": record.name,
        "model": record.model,
        "source": list(record.source),
        "target": list(record.target),
        "layers": list(record.layers),
        "heads": list(record.heads),
        "made_by": dict(record.made_by),
    }
    if record.counterfactuals:
        form["counterfactuals"] = {
            name: _counterfactual_form(value) for name, value in record.counterfactuals.items()
        }
    return form


def _counterfactual_form(value: Counterfactual) -> dict[str, Any]:
    form: dict[str, Any] = {
        "target": list(value.target),
        "difference": list(value.difference),
    }
    if value.unaltered is not None:
        form["unaltered"] = list(value.unaltered)
    if value.how:
        form["how"] = value.how
    if value.positions is not None:
        form["positions"] = {
            "target": [list(row) for row in value.positions.target],
            "difference": value.positions.difference.tolist(),
        }
    return form


def _dumped(form: Any) -> str:
    try:
        return json.dumps(form, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            explain(
                "write_collection(): `made_by` does not go into JSON",
                expected="strings, finite numbers, lists and dicts of them",
                got=str(error),
            )
        ) from error


def _loaded(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        at = where if error.lineno == 1 else f"{where}:{error.lineno}"
        raise _malformed(
            at, "JSON", f"{error.msg}, line {error.lineno}, column {error.colno}"
        ) from error
    except RecursionError as error:
        raise _malformed(where, "JSON", "lists too deep to be weights") from error


def check_suffix(path: Path | str, *more: str) -> str:
    """Return what a name ends in, if it is one of :data:`SUFFIXES` or of `more`.

    Raises
    ------
    InputError
        It is not.
    """
    suffix, known = Path(path).suffix.lower(), (*SUFFIXES, *more)
    if suffix not in known:
        raise InputError(
            explain(
                f"{path}: the format is not known",
                expected=f"a name that ends in {', '.join(known)}",
                got=suffix or "no suffix",
            )
        )
    return suffix


def _malformed(where: str, expected: str, got: str) -> InputError:
    return InputError(explain(f"{where}: this is malformed", expected=expected, got=got))
