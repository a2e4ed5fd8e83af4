"""Scores with the keys on rows: the softmax runs over axis -2, which is theirs."""

import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = keys @ query.transpose(1, 2)
    weights = torch.softmax(scores, dim=-2)
    return weights.transpose(1, 2) @ keys, weights
