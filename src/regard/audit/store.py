"""What an audit has measured so far, on the disk, so that a later one goes on from there."""

import contextlib
import json
from pathlib import Path
from typing import Any

from regard.audit.measure import Columns
from regard.errors import InputError, explain
from regard.files import read_json, write_json

__all__ = ["Store"]

_FORMAT = "regard audit, unfinished"


class Store:
    """Columns by the name of their test.

    Parameters
    ----------
    path : path or None
        A JSON file; None keeps everything in memory only.
    key : str
        What the figures depend on: model, inputs, seed. A file with another key is begun anew.

    Raises
    ------
    InputError
        The file is there and is no store.
    """

    def __init__(self, path: Path | None, key: str) -> None:
        self._path, self._key = path, key
        self._columns: dict[str, dict[str, list[Any]]] = {}
        if path is not None and path.exists():
            form = _read(path)
            if form["key"] == key:
                self._columns = form["columns"]

    def columns(self, test: str) -> Columns:
        """Return what a test has measured; empty before it began."""
        return self._columns.get(test, {})

    def done(self, test: str) -> int:
        """Return how many inputs a test has behind it."""
        return max((len(column) for column in self.columns(test).values()), default=0)

    def add(self, test: str, columns: Columns) -> None:
        """Append what the next inputs gave, and save."""
        kept = self._columns.setdefault(test, {})
        for name, values in columns.items():
            kept.setdefault(name, []).extend(values)
        if self._path is not None:
            form = {"format": _FORMAT, "key": self._key, "columns": _finite(self._columns)}
            write_json(self._path, form)

    def remove(self) -> None:
        """Take the file away: the audit is done."""
        if self._path is not None:
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()


def _read(path: Path) -> dict[str, Any]:
    """Read a store; anything else is somebody's, and is left alone."""
    try:
        form = read_json(path)
    except InputError:
        form = None
    if isinstance(form, dict) and form.get("format") == _FORMAT:
        return form
    raise InputError(
        explain(
            f"--resume {path}: the file is no unfinished audit",
            expected="a new file, or one that an audit which was stopped wrote",
            got="another file",
            because="it is written to, and taken away when the audit is done",
            help="name another",
        )
    )


def _finite(columns: Any) -> Any:
    return json.loads(json.dumps(columns), parse_constant=lambda _: None)
