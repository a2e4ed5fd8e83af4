import numpy as np


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = query @ keys.transpose(0, 2, 1)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)  # expect: RG301
    return weights @ keys, weights
