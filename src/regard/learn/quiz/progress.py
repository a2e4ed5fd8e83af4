"""What was answered, kept on this machine; the page keeps the same form.

``{"format": "regard quiz", "version": 1, "answers": {NAME: COUNTS}}``, where the counts are
``{"right": 2, "wrong": 1, "last": "right"}``.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from regard.errors import InputError, explain
from regard.files import unwritable, write_atomically

__all__ = ["Progress", "place"]

_FORMAT = "regard quiz"
_HELP = "give a file that `regard learn quiz --export` or the page wrote"


@dataclass
class Progress:
    """How often each question was answered right and wrong.

    Attributes
    ----------
    answers : dict
        By name: ``right`` and ``wrong``, counts from 0, and ``last``, "right" or "wrong".
    """

    answers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def note(self, name: str, right: bool) -> None:
        """Count one answer."""
        found = self.answers.setdefault(name, {"right": 0, "wrong": 0, "last": ""})
        found["right" if right else "wrong"] += 1
        found["last"] = "right" if right else "wrong"

    def known(self, name: str) -> bool:
        """Return whether the question was answered right when it was last asked."""
        return bool(self.answers.get(name, {}).get("last") == "right")

    def joined(self, other: "Progress") -> "Progress":
        """Return both together: for each question, what was answered more often.

        Counts are not summed, so that the same file may be read twice.
        """
        found = {name: dict(said) for name, said in self.answers.items()}
        for name, said in other.answers.items():
            mine = found.get(name)
            if mine is None or said["right"] + said["wrong"] > mine["right"] + mine["wrong"]:
                found[name] = dict(said)
        return Progress(found)

    def text(self) -> str:
        """Return it as JSON."""
        content = {"format": _FORMAT, "version": 1, "answers": self.answers}
        return json.dumps(content, indent=1, sort_keys=True) + "\n"

    def save(self, path: Path) -> None:
        """Write it, whole or not at all.

        Raises
        ------
        InputError
            The file cannot be written.
        """
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, self.text().encode("utf-8"))
        except OSError as error:
            raise InputError(unwritable(path, error)) from None

    @classmethod
    def load(cls, path: Path) -> "Progress":
        """Read a file; one that is not there is an empty one.

        Raises
        ------
        InputError
            It is no progress of this quiz.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError) as error:
            raise InputError(
                explain(
                    f"quiz: `{path}` cannot be read",
                    expected="JSON",
                    got=str(error),
                    help=_HELP,
                )
            ) from None
        return cls(_answers(content, path))


def place() -> Path:
    """Return where progress is kept: ``$XDG_STATE_HOME/regard``, or ~/.local/state/regard."""
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "regard" / "quiz.json"


def _answers(content: Any, path: Path) -> dict[str, dict[str, Any]]:
    if not isinstance(content, Mapping) or content.get("format") != _FORMAT:
        found = "another file"
    elif content.get("version") != 1:
        found = f"version {content.get('version')!r}"
    else:
        answers: Any = content.get("answers")
        found = _first_bad(answers)
        if not found:
            return {name: dict(said) for name, said in answers.items()}
    raise InputError(
        explain(
            f"quiz: `{path}` is no progress of this quiz",
            expected=f'"format": "{_FORMAT}", "version": 1 and counted answers',
            got=found,
            help=_HELP,
        )
    )


def _first_bad(answers: Any) -> str:
    if not isinstance(answers, Mapping):
        return "no answers"
    for name, said in answers.items():
        whole = isinstance(said, Mapping) and all(
            isinstance(said.get(kind), int) and said[kind] >= 0 for kind in ("right", "wrong")
        )
        if not whole or said.get("last") not in ("right", "wrong"):
            return f"{name}: {json.dumps(said)[:80]}"
    return ""
