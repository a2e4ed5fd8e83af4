"""Diagrams of the lessons, as SVG that is readable on light and on dark pages.

Each is a function without arguments that returns the whole picture, so that a lesson, a test or
a reader can draw it anew; :mod:`~regard.learn.diagrams.every` lists them by name.
"""
