"""The neutral colours of every picture, and what stands for each on a dark page.

A picture is saved in the light colours. A page that embeds its SVG may exchange them.
"""

from collections.abc import Mapping

__all__ = [
    "BAND",
    "DARK",
    "FRAME",
    "GRID",
    "INK",
    "LIGHT",
    "NIGHT",
    "PAPER",
    "QUIET",
    "RULE",
    "variables",
]

PAPER = "#ffffff"  # the ground
INK = "#1f2328"  # text
QUIET = "#59636e"  # secondary text
FRAME = "#8a8f98"  # around a grid of cells
GRID = "#d8dde3"  # behind lines
RULE = "#e4e7ec"  # between cells
BAND = "#eceff3"  # a region set apart

DARK = {
    PAPER: "#14181f",
    INK: "#e6e9ee",
    QUIET: "#a3adba",
    FRAME: "#7d8694",
    GRID: "#333b47",
    RULE: "#232a35",
    BAND: "#222935",
}
"""Each light colour's counterpart on a dark page."""

_NEUTRAL = {
    "paper": PAPER,
    "ink": INK,
    "quiet": QUIET,
    "frame": FRAME,
    "grid": GRID,
    "rule": RULE,
    "band": BAND,
}
LIGHT = {**_NEUTRAL, "accent": "#0b63ad", "mark": "#a8480a"}
"""The colours of a light page, by what a style sheet calls them."""

NIGHT = {
    **{name: DARK[color] for name, color in _NEUTRAL.items()},
    "accent": "#6cb6f5",
    "mark": "#ffb168",
}
"""The colours of a dark page, by the same names."""


def variables(colors: Mapping[str, str]) -> str:
    """Return colours as declarations of a style sheet: ``--ink: #1f2328;`` and so on."""
    return " ".join(f"--{name}: {color};" for name, color in colors.items())
