"""The explorer: alignments in one HTML file that opens from disk and asks no network.

The page's own parts are the files beside this one: plain JavaScript modules, a style sheet and
a frame. :func:`explorer` joins them with the weights.
"""

from regard.alignment.explorer.page import explorer

__all__ = ["explorer"]
