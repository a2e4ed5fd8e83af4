"""How to check: limits, and ``[tool.regard]`` of the nearest pyproject.toml."""

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from regard.errors import InputError, explain

__all__ = ["Limits", "Settings", "read_settings"]

_PAPERS = ("bahdanau", "luong")
_MASKS = ("keep", "drop")


@dataclass(frozen=True)
class Limits:
    """What one target may take, above what loading the libraries takes.

    Parameters
    ----------
    seconds : float
        Wall time; the process is ended after it.
    memory : int
        MiB.
    """

    seconds: float = 30.0
    memory: int = 4096


@dataclass(frozen=True)
class Settings:
    """``[tool.regard]``: what a project always wants; the command line goes before it."""

    targets: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    mask: Literal["keep", "drop"] | None = None
    paper: Literal["bahdanau", "luong"] | None = None
    path: str = ""  # the file, empty if there is none

    def flags(
        self,
        contract: Mapping[str, Any] | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return the engine's statements about one target.

        Parameters
        ----------
        contract : mapping, optional
            What is declared of this target: goes before the project's.
        given : mapping, optional
            Single statements that were typed: go before both.
        """
        project = {
            "mask": self.mask,
            "convention": self.paper,
            "roles": dict(self.roles) or None,
        }
        said = {name for name, value in (contract or {}).items() if value is not None}
        always = {n: v for n, v in project.items() if v is not None and n not in said}
        return {**always, **(given or {})}


def read_settings(start: str | Path) -> Settings:
    """Read ``[tool.regard]`` from the pyproject.toml in a folder or the nearest above it.

    Targets are returned as paths that hold from the current folder.

    Raises
    ------
    InputError
        If the file is no TOML, or a key or value is not known.
    """
    folder = Path(os.path.abspath(start))
    for place in (folder, *folder.parents):
        path = place / "pyproject.toml"
        if path.is_file():
            return _read(path)
    return Settings()


def _read(path: Path) -> Settings:
    try:
        data = tomllib.loads(path.read_bytes().decode("utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            explain(f"check: `{path}` cannot be read", expected="TOML", got=str(error))
        ) from None
    tool = data.get("tool")
    table = tool.get("regard", {}) if isinstance(tool, dict) else {}
    known = ("targets", "select", "ignore", "roles", "mask", "paper")
    if not isinstance(table, dict):
        raise _wrong(path, "[tool.regard]", "a table", table)
    for key in table:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            raise InputError(
                explain(
                    f"check: [tool.regard] of `{path}` has an unknown key",
                    expected=f"one of {', '.join(known)}",
                    got=key,
                    help=f"did you mean `{near[0]}`?" if near else None,
                )
            )
    targets = _texts(path, "targets", table.get("targets", []))
    return Settings(
        targets=tuple(_from_here(path.parent, target) for target in targets),
        select=_texts(path, "select", table.get("select", [])),
        ignore=_texts(path, "ignore", table.get("ignore", [])),
        roles=_roles(path, table.get("roles", {})),
        mask=_one_of(path, "mask", table.get("mask"), _MASKS),
        paper=_one_of(path, "paper", table.get("paper"), _PAPERS),
        path=str(path),
    )


def _from_here(folder: Path, target: str) -> str:
    place, _, entry = target.rpartition(":")
    is_path = (place or target).endswith(".py") or (folder / (place or target)).exists()
    if not is_path:
        return target  # a module
    shown = os.path.relpath(folder / (place or target))
    return f"{shown}:{entry}" if place else shown


def _texts(path: Path, key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise _wrong(path, key, 'a list of texts, as ["..."]', value)
    return tuple(value)


def _roles(path: Path, value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise _wrong(path, "roles", 'a table of texts, as {memory = "key"}', value)
    return value


def _one_of(path: Path, key: str, value: Any, allowed: tuple[str, ...]) -> Any:
    if value is not None and value not in allowed:
        raise _wrong(path, key, " or ".join(f'"{item}"' for item in allowed), value)
    return value


def _wrong(path: Path, key: str, expected: str, value: Any) -> InputError:
    return InputError(
        explain(
            f"check: `{key}` of [tool.regard] in `{path}` is refused",
            expected=expected,
            got=repr(value)[:80],
        )
    )
