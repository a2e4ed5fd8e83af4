"""Repair by search: general edits, each kept only if every relation then holds."""

from regard.check.repair.search import Search, Survivor, search

__all__ = ["Search", "Survivor", "search"]
