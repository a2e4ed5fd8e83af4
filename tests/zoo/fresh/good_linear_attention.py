"""Attention without a softmax, linear in the length: phi(q) (phi(k)^T v), in NumPy."""

import numpy as np


def phi(x):
    """elu(x) + 1, positive everywhere."""
    return np.where(x > 0, x + 1.0, np.exp(np.minimum(x, 0.0)))


def linear_attention(query, key, value):
    """query: (batch, T_dec, d), key: (batch, T_enc, d), value: (batch, T_enc, d_v)."""
    q, k = phi(query), phi(key)
    summary = np.einsum("btd,btv->bdv", k, value)
    norm = np.einsum("bqd,bd->bq", q, k.sum(axis=1))
    return np.einsum("bqd,bdv->bqv", q, summary) / norm[..., None]
