"""Figures that a reader moves: plain JavaScript, one module a figure, without a request.

:mod:`~regard.learn.figures.figure` sets a figure into a page, with the numbers that it starts
from (:mod:`~regard.learn.figures.given`). ``numbers.js`` is the mathematics, tested against
:mod:`regard.attention.reference`; ``parts.js`` are the sliders, tables and grids of all;
``main.js`` starts the figures of a page.
"""
