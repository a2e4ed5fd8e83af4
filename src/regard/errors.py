"""The exceptions, and the one layout of their text.

Every error a user can cause is a :class:`RegardError` whose text has the same five parts, so
that it reads the same from a score, a decoder or the command line::

    additive(): `U_a` does not fit `W_a` on axis d_attn
      expected  U_a (d_attn=13, d_h)
      got       U_a (7, 13)
      because   d_attn = 13 comes from `W_a`
      help      the transpose of `U_a` would fit
"""

__all__ = [
    "BackendError",
    "ConventionError",
    "InputError",
    "MaskError",
    "RegardError",
    "ShapeError",
    "explain",
]


class RegardError(Exception):
    """Base of every error that regard raises on purpose."""


class ShapeError(RegardError, ValueError):
    """Two arguments disagree on a named axis, or one has too many or too few axes."""


class MaskError(RegardError, ValueError):
    """A mask is not boolean, or its meaning is not the one that was asked for."""


class ConventionError(RegardError, ValueError):
    """Options that contradict each other, or that leave open which of two papers is meant."""


class BackendError(RegardError, TypeError):
    """Arrays of different libraries or number types, or no array at all."""


class InputError(RegardError, ValueError):
    """A file, directory or option cannot be used; on the command line, exit code 2."""


def explain(
    what: str,
    *,
    expected: str,
    got: str,
    because: str | None = None,
    help: str | None = None,  # noqa: A002 - the row's printed name
) -> str:
    """Lay out an error's text: what is wrong, then one row for each part that is known.

    Parameters
    ----------
    what : str
        Where and what, in names; no full stop and no remedy.
    expected, got : str
        The same thing as it should be and as it is.
    because : str, optional
        Where the expectation was born.
    help : str, optional
        What to do; only when it was checked to be true.

    Returns
    -------
    text : str
    """
    rows = {"expected": expected, "got": got, "because": because, "help": help}
    # A value of several lines hangs under its own first line.
    body = [
        f"  {name:<10}" + text.replace("\n", "\n" + " " * 12)
        for name, text in rows.items()
        if text
    ]
    return "\n".join([what, *body])
