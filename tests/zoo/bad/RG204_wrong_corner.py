import torch


def attend(query, memory):
    """query (batch, T_dec, d_h): the last T_dec of the T_mem+T_dec positions in memory"""
    T_dec, total = query.shape[1], memory.shape[1]
    seen = torch.ones(T_dec, total, dtype=torch.bool).tril()  # expect: RG204
    scores = query @ memory.transpose(1, 2) / query.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(~seen, float("-inf")), dim=-1)
    return weights @ memory, weights
