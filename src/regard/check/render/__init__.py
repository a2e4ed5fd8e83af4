"""A report in the form that somebody reads: one renderer a format, each reads only reports.

The renderers know nothing of rules and run nothing. :func:`render` is the only place where
what the rules say is handed to the one format (SARIF) that carries it.
"""

import importlib
from collections.abc import Sequence
from typing import Literal

from regard.check.finding import Report
from regard.errors import InputError, explain

__all__ = ["FORMATS", "Format", "render"]

Format = Literal["full", "concise", "json", "sarif", "github", "junit", "html", "notebook"]

FORMATS: tuple[Format, ...] = ("full", "concise", "json", "sarif", "github", "junit", "html")
"""What ``--format`` takes; a notebook asks for ``notebook`` itself."""

_MODULES = {
    "full": "text",
    "concise": "concise",
    "json": "json_",
    "sarif": "sarif",
    "github": "github",
    "junit": "junit",
    "html": "html",
    "notebook": "notebook",
}


def render(
    format: str,  # noqa: A002 - the option's name
    reports: Sequence[Report],
    *,
    color: bool = False,
    width: int = 80,
    command: str = "",
    fail_on: str = "error",
) -> str:
    """Return the text of some reports, which ends in a newline.

    Parameters
    ----------
    format : str
        One of :data:`FORMATS`, or ``notebook``.
    reports : sequence of Report
        One a target, in the order of the targets.
    color : bool
        ``full`` only: repeat in colour what the text says.
    width : int
        ``full`` only: columns to fill; code is never broken.
    command : str
        ``html`` only: the command that made the reports.
    fail_on : "error", "warning" or "note"
        ``junit`` only: the least level that counts as a failure.

    Raises
    ------
    InputError
        The format is unknown.
    """
    if format not in _MODULES:
        raise InputError(
            explain(
                f"there is no format {format!r}",
                expected=", ".join(FORMATS),
                got=repr(format),
                help="choose one of them",
            )
        )
    module = importlib.import_module(f"regard.check.render.{_MODULES[format]}")
    options: dict[str, object] = {}
    if format == "full":
        options = {"color": color, "width": width}
    elif format == "html":
        options = {"command": command}
    elif format == "junit":
        options = {"fail_on": fail_on}
    elif format == "sarif":
        from regard.check.rules import every  # noqa: PLC0415 - no other format needs it

        options = {"rules": every()}
    text: str = module.render(reports, **options)
    return text if text.endswith("\n") else text + "\n"
