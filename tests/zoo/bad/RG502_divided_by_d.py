import torch


def attend(query, keys, values):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h), values (batch, T_enc, d_v)"""
    scores = torch.einsum("btd,bsd->bts", query, keys) / query.size(-1)  # expect: RG502
    weights = scores.softmax(-1)
    return weights @ values, weights
