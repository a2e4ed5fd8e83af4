"""Interactive figures: one plain JavaScript module each, ``NAME.js`` in this folder.

A lesson places one by a block ```` ```{interactive} NAME ````. Where its module is not there,
pages leave the block out, so that no text asks a reader to move what does not move.
"""

from pathlib import Path

__all__ = ["HERE", "is_there"]

HERE = Path(__file__).parent
"""Where the modules lie."""


def is_there(name: str) -> bool:
    """Return whether a figure has its module."""
    return (HERE / f"{name}.js").is_file()
