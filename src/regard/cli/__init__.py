"""The command line: one module a verb, and no logic."""
