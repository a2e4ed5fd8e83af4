"""Imports every module of relations, which registers them."""
