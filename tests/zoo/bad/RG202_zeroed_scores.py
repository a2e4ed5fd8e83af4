import numpy as np


def attend(state, keys, keep):
    """state (batch, d_h), keys (batch, T_enc, d_h), keep (batch, T_enc): True on real keys"""
    scores = np.einsum("bd,btd->bt", state, keys)
    scores = np.where(keep, scores, 0.0)  # expect: RG202
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return np.einsum("bt,btd->bd", weights, keys), weights
