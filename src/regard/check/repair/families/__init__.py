"""Families of edits, each a general way in which attention code goes wrong."""
