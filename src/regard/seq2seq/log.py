"""The course of a run in a CSV file, one row every few steps and one for each look."""

import csv
import io
from pathlib import Path
from typing import IO

from regard.errors import InputError
from regard.files import unreadable, unwritable, write_atomically
from regard.seq2seq.events import Progress

__all__ = ["CsvLog"]

_COLUMNS = ("step", "loss", "learning_rate", "mean_loss")


class CsvLog:
    """Writes ``log.csv``: step, loss of that step, learning rate; at looks the mean loss since
    the look before and the held-out error rates; the seconds of the run last.

    Parameters
    ----------
    path : Path
    scores : tuple of str
        Names of the error rates.
    step : int
        Steps done before this sitting; later rows, of a sitting that was killed, are dropped.

    Raises
    ------
    InputError
        The file cannot be read or written.
    """

    def __init__(self, path: Path, *, scores: tuple[str, ...], step: int = 0) -> None:
        self._path = path
        self._scores = scores
        header = [*_COLUMNS, *scores, "seconds"]
        write_atomically(path, _text([header, *_rows(path, header, step)]).encode("utf-8"))
        try:
            self._stream: IO[str] = path.open("a", encoding="utf-8", newline="")
        except OSError as error:
            raise InputError(unwritable(path, error)) from error

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def show(self, event: Progress) -> None:
        """Take one event, and write a row if it is time."""
        if not event.is_logged:
            return
        look = event.evaluation
        rates = dict(look.scores) if look else {}
        row = [
            str(event.step),
            repr(event.loss),
            repr(event.rate),
            repr(look.loss) if look else "",
            *(repr(rates[name]) if name in rates else "" for name in self._scores),
            f"{event.seconds:.1f}",
        ]
        try:
            self._stream.write(_text([row]))
            self._stream.flush()
        except OSError as error:
            raise InputError(unwritable(self._path, error)) from error


def _rows(path: Path, header: list[str], step: int) -> list[list[str]]:
    """Return the rows of earlier sittings that are still true."""
    if not step:
        return []
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(
            unreadable(path, error, expected="a readable log", missing="")
        ) from error
    *whole, _ = text.split("\n")  # what stands behind the last line end was cut short
    first, *rows = csv.reader(whole) if whole else [[]]
    if first != header:
        return []
    return [r for r in rows if len(r) == len(header) and r[0].isdigit() and int(r[0]) <= step]


def _text(rows: list[list[str]]) -> str:
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerows(rows)
    return stream.getvalue()
