"""What is wrong with a line of a file."""

from dataclasses import dataclass

from regard.errors import InputError, explain

__all__ = ["Fault", "excerpt"]


@dataclass(frozen=True)
class Fault:
    """A line that cannot be used.

    Parameters
    ----------
    line : int
        Counted from 1.
    code : str
        What is wrong, in one word; the same for all lines with the same defect.
    what : str
        The same for people: no full stop and no remedy.
    expected, got, remedy : str
        As :func:`regard.errors.explain` lays them out.
    fatal : bool
        Nothing after it could be read.
    """

    line: int
    code: str
    what: str
    expected: str
    got: str
    remedy: str
    fatal: bool = False

    def error(self, name: str) -> InputError:
        """Return the error for a file of this name."""
        return InputError(
            explain(
                f"{name}, line {self.line}: {self.what}",
                expected=self.expected,
                got=self.got,
                help=self.remedy,
            )
        )


def excerpt(text: str, length: int = 60) -> str:
    """Return the beginning of a text, quoted, and how much more there is."""
    rest = len(text) - length
    return repr(text[:length]) + (f" and {rest:,} more characters" if rest > 0 else "")
