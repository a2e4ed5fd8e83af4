"""What scripts beside it share: write a file, or with ``--check`` say if it would change."""

import sys
from pathlib import Path

__all__ = ["between", "written"]


def written(path: Path, wanted: str) -> int:
    """Write a file; with ``--check`` leave it alone, and return 1 where it is not as wanted."""
    if "--check" not in sys.argv[1:]:
        path.write_text(wanted, encoding="utf-8")
        return 0
    if path.exists() and path.read_text(encoding="utf-8") == wanted:
        return 0
    print(f"{path.name} is out of date: run python {sys.argv[0]}", file=sys.stderr)
    return 1


def between(path: Path, begin: str, end: str, block: str) -> str:
    """Return a file's text with a block in place of what stands between two marks.

    Raises
    ------
    SystemExit
        A mark is missing: nothing would be replaced, or all that follows.
    """
    text = path.read_text(encoding="utf-8")
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise SystemExit(f"{path} has no {begin.strip()} ... {end.strip()}")
    return f"{before}{begin}{block}{end}{after}"
