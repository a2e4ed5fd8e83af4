"""A pointer's probabilities: scores are bounded by a tanh, visited nodes are out."""

import numpy as np


def pointer_probs(query, nodes, visited, bound=10.0):
    """query: (batch, d), nodes: (batch, n, d), visited: True where a node is out"""
    u = np.einsum("bd,bnd->bn", query, nodes) / np.sqrt(query.shape[1])
    u = bound * np.tanh(np.where(visited, -np.inf, u))  # expect: RG202
    e = np.exp(u - u.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
