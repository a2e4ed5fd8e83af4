"""The eleven clauses, a function each; :mod:`regard.testing.contract` lists them."""
