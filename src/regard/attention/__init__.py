"""Compute: scores, masks, weights, context and heads, for every array-API library."""
