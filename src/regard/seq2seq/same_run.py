"""Whether a run that is taken up again is the one that was begun, and where it differs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from regard.errors import InputError, explain
from regard.seq2seq.description import Description

__all__ = ["Difference", "OtherRunError", "differences", "same_run"]

_SHOWN = 200  # characters of one value


class Difference(NamedTuple):
    """An entry that has two values."""

    name: str
    """With the names of what it is in before, as ``train.steps``."""

    before: Any
    now: Any


class OtherRunError(InputError):
    """A run cannot be taken up again: what it began with is not what is asked for now.

    Parameters
    ----------
    text : str
    changes : sequence of Difference
        The settings that differ; empty where it is not the settings.
    command : str
        What began the run, as its directory says; empty if that does not say it.
    """

    def __init__(
        self, text: str, changes: Sequence[Difference] = (), command: str = ""
    ) -> None:
        super().__init__(text)
        self.changes = tuple(changes)
        self.command = command

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        """Keep all of it on the way from a process to another."""
        return type(self), (str(self), self.changes, self.command)


def same_run(saved: Description, wanted: Description, where: Path) -> Description:
    """Return the saved description, which is the one that stays.

    Raises
    ------
    OtherRunError
        Settings, data or vocabularies are others.
    """
    settings = saved.made_by.get("settings"), wanted.made_by["settings"]
    vocabularies = [
        {name: getattr(each, name).to_json() for name in ("source", "target")}
        for each in (saved, wanted)
    ]
    for name, before, now in (
        ("settings", *settings),
        ("data", _data(saved), _data(wanted)),
        ("vocabularies", *vocabularies),
    ):
        found = differences(before, now)
        if found:
            command = str(saved.made_by.get("command", ""))
            raise OtherRunError(
                explain(
                    f"{where}: the run in it has other {name}",
                    expected=_listed(found, "before"),
                    got=_listed(found, "now"),
                    because="a run goes on with what it began with",
                    help="give the first command again with --resume, or --force to begin anew",
                ),
                found if name == "settings" else (),
                command,
            )
    return saved


def differences(before: Any, now: Any) -> tuple[Difference, ...]:
    """Return the entries of JSON values that differ, those inside others by both names."""
    if not (isinstance(before, Mapping) and isinstance(now, Mapping)):
        return () if before == now else (Difference("all", before, now),)
    old, new = _flat(before), _flat(now)
    return tuple(
        Difference(name, old.get(name), new.get(name))
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    )


def _listed(found: Sequence[Difference], side: str) -> str:
    return "\n".join(f"{one.name} = {str(getattr(one, side))[:_SHOWN]}" for one in found)


def _data(description: Description) -> Any:
    data = description.made_by.get("train")
    return {k: data.get(k) for k in ("pairs", "sha256")} if isinstance(data, dict) else data


def _flat(form: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in form.items():
        if isinstance(value, Mapping):
            found |= {f"{name}.{inner}": v for inner, v in _flat(value).items()}
        else:
            found[name] = value
    return found
