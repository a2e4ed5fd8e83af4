"""An attention layer with a mistake that never crashes."""

import torch


def attend(query, keys, W, keep):
    """query: (batch, T_dec, d_s); keys: (batch, T_enc, d_h); keep is True on real tokens."""
    scores = query @ W @ keys.transpose(1, 2)
    scores = scores.masked_fill(~keep[:, None, :], -1e9)
    weights = torch.softmax(scores, dim=1)
    return weights @ keys, weights
