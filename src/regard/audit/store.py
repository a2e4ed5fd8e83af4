"""What an audit has measured so far, on the disk, so that a later one goes on from there."""

import contextlib
import json
from pathlib import Path
from typing import Any

from regard.audit.measure import Columns
from regard.errors import InputError
from regard.files import read_json, write_json

__all__ = ["Store"]


class Store:
    """Columns by the name of their test.

    Parameters
    ----------
    path : path or None
        A JSON file; None keeps everything in memory only.
    key : str
        What the figures depend on: model, inputs, seed. A file with another key is begun anew.
    """

    def __init__(self, path: Path | None, key: str) -> None:
        self._path, self._key = path, key
        self._columns: dict[str, dict[str, list[Any]]] = {}
        if path is not None and path.exists():
            with contextlib.suppress(InputError, KeyError, TypeError):
                form = read_json(path)
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
            write_json(self._path, {"key": self._key, "columns": _finite(self._columns)})

    def remove(self) -> None:
        """Take the file away: the audit is done."""
        if self._path is not None:
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()


def _finite(columns: Any) -> Any:
    return json.loads(json.dumps(columns), parse_constant=lambda _: None)
