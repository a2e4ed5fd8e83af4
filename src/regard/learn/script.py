"""The one script of a lesson's page: its figures and its questions."""

from functools import cache
from pathlib import Path

from regard.alignment.explorer.bundle import bundle
from regard.learn.figures.figure import SCRIPTS
from regard.learn.quiz.page import SCRIPT

__all__ = ["script"]


@cache
def script() -> str:
    """Return the script that starts a page; it asks nothing of any network."""
    return bundle([*SCRIPTS, SCRIPT, Path(__file__).with_name("start.js")])
