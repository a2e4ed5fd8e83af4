"""One thing to check: a text, the name in it, what is declared about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Skip", "Subject"]


@dataclass(frozen=True)
class Subject:
    """A text to check.

    Parameters
    ----------
    name : str
        ``package/family.Class`` with what sets it apart in brackets, for instance ``(cross)``.
    library, family : str
        The package it comes from, and the part of it.
    source, entry : str
        The text and the name in it.
    contract : mapping or None
        What is declared; None asks the check to guess everything.
    package : str
        Where relative imports of the text start.
    doubt : str
        Why it is thought that it cannot be asked; it is tried all the same.
    certain : bool
        Whether its manual describes this very call, so that an error in it is a finding.
    """

    name: str
    library: str
    family: str
    source: str
    entry: str
    contract: Mapping[str, Any] | None = None
    package: str = ""
    doubt: str = ""
    certain: bool = False


@dataclass(frozen=True)
class Skip:
    """What could not be asked, and why; ``error`` is what an attempt came to."""

    name: str
    library: str
    family: str
    why: str
    error: str = ""
