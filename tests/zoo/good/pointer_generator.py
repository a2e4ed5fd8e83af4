"""Masked after the softmax, and divided by what is left: the same as masking before."""

import torch


def attend(query, keys, keep):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h), keep (batch, T_enc) real keys"""
    weights = torch.softmax(query @ keys.transpose(1, 2), dim=-1)
    weights = weights * keep[:, None, :]
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return weights @ keys, weights
