import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    query *= query.shape[-1] ** -0.5  # expect: RG803
    weights = torch.softmax(query @ keys.transpose(1, 2), dim=-1)
    return weights @ keys, weights
