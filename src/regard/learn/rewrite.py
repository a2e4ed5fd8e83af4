"""Putting what ran into a lesson's file and its figures, so that no number is typed by hand."""

from collections.abc import Iterable
from pathlib import Path

from regard.learn.execute import Ran

__all__ = ["FIGURES", "rewritten", "stale_figures"]

FIGURES = Path(__file__).parent / "lessons" / "figures"
"""Where the lessons' pictures lie."""


def rewritten(text: str, results: Iterable[Ran]) -> str:
    """Return a lesson with its outputs exchanged for what its blocks printed.

    Parameters
    ----------
    text : str
        The lesson.
    results : iterable of Ran
        Of all its blocks. One that printed something and shows no output gets a block for it.
    """
    lines = text.splitlines()
    # From the end, so that the lines of earlier blocks stay where they are.
    for ran in sorted(results, key=lambda each: -each.block.first):
        printed = ran.printed.rstrip("\n").splitlines()
        if ran.block.language == "console":
            lines[ran.block.first + 1 : ran.block.last] = printed
        elif ran.output is not None:
            lines[ran.output.first + 1 : ran.output.last] = printed
        elif printed:
            lines[ran.block.last + 1 : ran.block.last + 1] = ["", "```text", *printed, "```"]
    return "\n".join(lines) + "\n"


def stale_figures(results: Iterable[Ran], folder: Path = FIGURES) -> dict[Path, str]:
    """Return the figures that are not what ran, each with what it must be."""
    found = {}
    for ran in results:
        name = ran.block.options.get("figure")
        if name is None:
            continue
        path = folder / f"{name}.svg"
        if not path.is_file() or path.read_text(encoding="utf-8") != ran.figure:
            found[path] = ran.figure
    return found
