"""Recipes: data and settings that are known to work, one task a module."""
