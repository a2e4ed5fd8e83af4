"""Which columns of a file are the source, the target and the features.

Columns are named by the file's header or counted from 1; a name says that there is a header.
With numbers alone there is none, unless ``header`` says so. A first line that reads like a
header is refused until someone says what it is: neither answer is guessed.
"""

import difflib
from dataclasses import dataclass
from typing import Any

from regard.errors import InputError, explain

__all__ = ["FORMATS", "Column", "Columns", "column", "looks_like_header", "places"]

FORMATS = ("tsv", "tsv-quoted", "csv", "csv-semicolon", "jsonl")
"""What a file may be: ``tsv`` has no quotes, ``tsv-quoted`` has those of CSV, and
``csv-semicolon`` is what spreadsheets write where the comma is the decimal sign.
"""

Column = int | str | tuple[int | str, ...]

_ROLES = ("source", "target", "features")
# In a first line, these are names of columns and not a pair.
_NAMES = frozenset(
    """
    source src input original word words grapheme graphemes spelling lemma noisy dirty
    target tgt trg output pron prons pronunciation pronunciations phoneme phonemes phone
    phones ipa form inflected clean corrected normalized normalised translation
    features feats feature tags tag msd
    """.split()  # noqa: SIM905 - a list of fifty literals reads worse
)


@dataclass(frozen=True)
class Columns:
    """The columns that make a pair.

    Parameters
    ----------
    source, target, features : int, str or tuple of them, optional
        A number from 1, a name in the header, or the key of a JSON object. Of several target
        columns each that is not empty is a reference; several feature columns are joined.
        By default source and target are the columns 1 and 2, or the keys ``source`` and
        ``target``, and there are no features.
    header : bool, optional
        Whether the first line names the columns. None: it does if a column is named.

    Raises
    ------
    InputError
        A number is below 1, a name is empty, the source is several columns, a column has two
        parts, or a column is named where there is no header.

    Examples
    --------
    >>> Columns(target=3, features=2).of("target")
    (3,)
    """

    source: int | str | None = None
    target: Column | None = None
    features: Column | None = None
    header: bool | None = None

    def __post_init__(self) -> None:
        given = {role: _several(getattr(self, role)) for role in _ROLES}
        for role, columns in given.items():
            for one in columns:
                named = isinstance(one, str)
                if isinstance(one, bool) or (not one if named else _below(one)):
                    raise _refused(role, "a number from 1, or a name", repr(one))
        if isinstance(self.source, tuple):
            raise _refused("source", "one column", f"{len(self.source)} columns")
        every = [one for columns in given.values() for one in columns]
        twice = next((one for i, one in enumerate(every) if one in every[:i]), None)
        if twice is not None:
            raise _refused("a column", "one part for each column", f"{twice!r} twice")
        if self.header is False and self.named:
            raise InputError(
                explain(
                    "Columns(): a column is named, and `header` says that there are no names",
                    expected="numbers, or header=True",
                    got=", ".join(map(repr, self.named)),
                    help="count the columns from 1, or say that there is a header",
                )
            )

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that are given by name."""
        every = (one for role in _ROLES for one in _several(getattr(self, role)))
        return tuple(one for one in every if isinstance(one, str))

    @property
    def chosen(self) -> bool:
        """Whether anything but the default was asked for."""
        return any(getattr(self, role) is not None for role in _ROLES)

    def of(self, role: str, *, keys: bool = False) -> tuple[int | str, ...]:
        """Return the columns of a part: ``source``, ``target`` or ``features``.

        Parameters
        ----------
        role : str
        keys : bool
            By default they are keys of a JSON object, not numbers.
        """
        asked = getattr(self, role)
        if asked is None and role != "features":
            asked = role if keys else _ROLES.index(role) + 1
        return _several(asked)

    def to_json(self) -> dict[str, Any]:
        """Return a form that :meth:`from_json` reads."""
        form = {role: getattr(self, role) for role in (*_ROLES, "header")}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in form.items()
        }

    @classmethod
    def from_json(cls, form: Any) -> "Columns":
        """Rebuild the choice.

        Raises
        ------
        InputError
            ``form`` is not what :meth:`to_json` returns.
        """
        if not (
            isinstance(form, dict)
            and set(form) == {*_ROLES, "header"}
            and isinstance(form["header"], bool | None)
            and all(isinstance(form[role], int | str | list | None) for role in _ROLES)
            and all(
                isinstance(one, int | str)
                for role in _ROLES
                if isinstance(form[role], list)
                for one in form[role]
            )
        ):
            raise InputError(
                explain(
                    "Columns.from_json(): this is no choice of columns",
                    expected='{"source": ..., "target": ..., "features": ..., "header": ...}',
                    got=repr(form)[:80],
                )
            )
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in form.items()
        }
        return cls(**values)


def column(text: str) -> int | str:
    """Read a column from the command line: digits are a number, everything else is a name."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else text


def looks_like_header(fields: list[str]) -> bool:
    """Return whether the fields of a first line are names that columns often have."""
    names = [field.strip().lower() for field in fields]
    return len(set(names)) == len(names) > 1 and all(name in _NAMES for name in names)


def places(columns: Columns, header: list[str] | None, count: int) -> dict[str, list[int]]:
    """Return where the parts are in a row, from 0.

    Parameters
    ----------
    columns : Columns
    header : list of str or None
        The names, if there are any.
    count : int
        Of the columns of the first row.

    Raises
    ------
    LookupError
        There is no such column; its arguments are what is wrong, expected, got, and a remedy.
    """
    found: dict[str, list[int]] = {}
    for role in _ROLES:
        found[role] = [_place(role, one, header, count) for one in columns.of(role)]
    every = [place for several in found.values() for place in several]
    if len(set(every)) < len(every):
        place = next(place for place in every if every.count(place) > 1)
        raise LookupError(
            f"column {place + 1} has two parts",
            "different columns for source, target and features",
            f"column {place + 1} twice",
            "choose another column for one of them",
        )
    return found


def _place(role: str, one: int | str, header: list[str] | None, count: int) -> int:
    if isinstance(one, int):
        if one <= count:
            return one - 1
        raise LookupError(
            f"there is no column {one} for the {role}",
            f"at least {one} columns",
            f"{count} column" + "s" * (count > 1),
            "choose another column",
        )
    assert header is not None  # a name comes with a header
    times = header.count(one)
    if times == 1:
        return header.index(one)
    near = difflib.get_close_matches(one, header, n=1)
    raise LookupError(
        f"the header has {'no column' if not times else f'{times} columns'} {one!r}",
        f"one column {one!r} for the {role}",
        ", ".join(map(repr, header))[:200],
        f"did you mean {near[0]!r}?"
        if near and not times
        else "choose another name, or count the columns from 1",
    )


def _several(column: Column | None) -> tuple[int | str, ...]:
    if column is None:
        return ()
    return column if isinstance(column, tuple) else (column,)


def _below(number: Any) -> bool:
    return not isinstance(number, int) or number < 1


def _refused(role: str, expected: str, got: str) -> InputError:
    return InputError(explain(f"Columns(): `{role}` is refused", expected=expected, got=got))
