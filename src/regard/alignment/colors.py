"""The neutral colours of every picture, and what stands for each on a dark page.

A picture is saved in the light colours. A page that embeds its SVG may exchange them.
"""

__all__ = ["BAND", "DARK", "FRAME", "GRID", "INK", "PAPER", "QUIET", "RULE"]

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
