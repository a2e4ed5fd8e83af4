"""What is declared outside the code: a contract file, and statements on the command line."""

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from regard.check.contract import Contract
from regard.errors import InputError, RegardError, explain

__all__ = ["pairs", "read_declared", "validated"]


def read_declared(path: str | Path) -> dict[str, Any]:
    """Read a contract file, TOML if its name ends so and JSON otherwise.

    Returns
    -------
    statements : dict
        As the file has them; they were found to be a contract.

    Raises
    ------
    InputError
        The file is missing, is no JSON or TOML, or states something unknown.
    """
    path = Path(path)
    is_toml = path.suffix.lower() == ".toml"
    try:
        text = path.read_bytes().decode("utf-8-sig")
        data = tomllib.loads(text) if is_toml else json.loads(text)
    except OSError as error:
        raise InputError(
            explain(
                f"check: the contract `{path}` cannot be read",
                expected="a JSON or TOML file",
                got=(error.strerror or str(error)).lower(),
            )
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(
            explain(
                f"check: the contract `{path}` cannot be read",
                expected="TOML" if is_toml else "JSON (a file of TOML is named so)",
                got=str(error),
            )
        ) from None
    return validated(data, str(path))


def validated(data: Any, where: str) -> dict[str, Any]:
    """Return a contract's statements if they are some.

    Raises
    ------
    InputError
        They are no table, or one of them is unknown or of the wrong form.
    """
    if not isinstance(data, Mapping):
        raise InputError(
            explain(
                f"check: {where} is no contract",
                expected='a table of statements, as {"inputs": {"q": "batch T_dec d_h"}}',
                got=type(data).__name__,
            )
        )
    try:
        Contract.from_mapping(data, where)
    except RegardError:
        raise
    except (TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
        raise InputError(
            explain(
                f"check: {where} has a statement of the wrong form",
                expected='statements in their forms, as {"inputs": {"q": "batch T_dec d_h"}}',
                got=str(error),
            )
        ) from None
    return dict(data)


def pairs(option: str, texts: Iterable[str], *, literal: bool = False) -> dict[str, Any]:
    """Read ``NAME=VALUE`` texts of a repeated option.

    Parameters
    ----------
    option : str
        For messages.
    texts : iterable of str
    literal : bool
        Whether a value that is a number, true, false or null means that and not a text.

    Raises
    ------
    InputError
        A text has no name, no ``=``, or a name that was given before.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name, value = name.strip(), value.strip()
        if not (equals and name.isidentifier()) or name in found:
            raise InputError(
                explain(
                    f"{option}: {text!r} is refused",
                    expected="NAME=VALUE" + (", each name once" if name in found else ""),
                    got=text,
                )
            )
        found[name] = _literal(value) if literal else value
    return found


def _literal(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text  # a size's name or an expression of sizes
    return text if isinstance(value, str | dict) else value
