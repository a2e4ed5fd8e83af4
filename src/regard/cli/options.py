"""Types of arguments and options: what they refuse, they refuse in regard's own words."""

import math
from typing import Any

import click

from regard.errors import InputError, explain

__all__ = ["LONGEST", "STEPS", "THREADS", "Number", "Where"]


class Number(click.ParamType):  # type: ignore[type-arg]  # generic in newer clicks only
    """A number within bounds.

    Parameters
    ----------
    kind : int or float
    low, high : number
        The bounds; the number may be equal to them unless they are open.
    open_low, open_high : bool
        Whether the bound itself is refused.
    """

    name = "number"

    def __init__(
        self,
        kind: type[int] | type[float],
        low: float,
        high: float = math.inf,
        *,
        open_low: bool = False,
        open_high: bool = False,
    ) -> None:
        self._kind = kind
        self._low, self._high = low, high
        self._open_low, self._open_high = open_low, open_high
        self.name = "integer" if kind is int else "float"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | float:
        """Return the number.

        Raises
        ------
        InputError
            It is none, or outside the bounds.
        """
        try:
            number = self._kind(value)
        except (TypeError, ValueError):
            raise self._refused(value, param, ctx) from None
        above = number > self._low or (number == self._low and not self._open_low)
        below = number < self._high or (number == self._high and not self._open_high)
        if not (above and below):  # NaN is neither
            raise self._refused(value, param, ctx)
        return number

    def _refused(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> InputError:
        low = f"{'above' if self._open_low else 'from'} {_shown(self._low)}"
        high = f"{'below' if self._open_high else 'to'} {_shown(self._high)}"
        kind = "a whole number" if self._kind is int else "a number"
        return InputError(
            explain(
                f"{_name(param)}: {str(value)[:40]} is refused",
                expected=f"{kind} {low}" + (f" {high}" if self._high < math.inf else ""),
                got=str(value)[:40],
                help=_help(ctx),
            )
        )


class Where(click.Path):
    """A path, not looked at before it is used, so that the error is the one of its use.

    Parameters
    ----------
    no_dash : bool
        Whether ``-`` is refused; pipes are then not accepted.
    """

    def __init__(self, *, no_dash: bool = False) -> None:
        super().__init__()
        self._no_dash = no_dash

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the path as it was given.

        Raises
        ------
        InputError
            It is empty, or ``-`` where that does not work.
        """
        if not value:
            raise InputError(
                explain(
                    f"{_name(param)}: the path is empty",
                    expected="the name of a file or directory",
                    got="an empty text",
                    help=_help(ctx),
                )
            )
        if value == "-" and self._no_dash:
            raise InputError(
                explain(
                    f"{_name(param)}: standard input is not accepted here",
                    expected="the name of a file",
                    got="-",
                    help="pipes are not accepted: write to a file and name it "
                    "(a file called - is ./-)",
                )
            )
        return str(value)


LONGEST = 2000
"""Symbols of a text that verbs take without being told otherwise: attention grows squared."""

STEPS = Number(int, 1, 10**9)
# More threads than any machine has cores; far above, the thread library crashes.
THREADS = Number(int, 1, 256)


def _shown(bound: float) -> str:
    return f"{bound:,}" if isinstance(bound, int) else f"{bound:g}"


def _name(param: click.Parameter | None) -> str:
    if isinstance(param, click.Option):
        return max(param.opts, key=len)
    return param.human_readable_name if param is not None else "value"


def _help(ctx: click.Context | None) -> str | None:
    return None if ctx is None else f"`{ctx.command_path} --help` lists what there is"
