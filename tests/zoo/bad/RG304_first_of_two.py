import torch


def attend(query, keys, keep):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h), keep (batch, T_enc) real keys"""
    scores = query @ keys.transpose(1, 2)
    raw = torch.softmax(scores, dim=-1)
    weights = torch.softmax(scores.masked_fill(~keep[:, None], float("-inf")), dim=-1)
    return raw @ keys, weights  # expect: RG304
