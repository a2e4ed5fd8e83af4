"""Additive attention on NumPy, with the maximum taken off before the exponential."""

import numpy as np


def attend(state, annotations, W, U, v):
    """state (batch, d_s), annotations (batch, T_enc, d_h)"""
    energy = np.tanh((state @ W)[:, None, :] + annotations @ U) @ v
    e = np.exp(energy - energy.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    return np.einsum("bt,btd->bd", weights, annotations), weights
