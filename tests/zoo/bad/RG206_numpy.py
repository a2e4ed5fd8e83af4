import numpy as np


def attend(query, keys, keep):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h), keep (batch, T_enc) real keys"""
    scores = query @ keys.transpose(0, 2, 1)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True) * keep[:, None, :]  # expect: RG206
    return weights @ keys, weights
