"""The softmax in chunks of keys, with a running maximum and a running sum."""

import torch


def attend(query, keys, values):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h), values (batch, T_enc, d_v)"""
    largest = torch.full((*query.shape[:2], 1), float("-inf"), dtype=query.dtype)
    total = torch.zeros_like(largest)
    context = query.new_zeros(query.shape[0], query.shape[1], values.shape[2])
    for start in range(0, keys.shape[1], 4):
        k, v = keys[:, start : start + 4], values[:, start : start + 4]
        scores = query @ k.transpose(1, 2) / query.shape[-1] ** 0.5
        peak = torch.maximum(largest, scores.amax(dim=-1, keepdim=True))
        shrink, part = torch.exp(largest - peak), torch.exp(scores - peak)
        total = total * shrink + part.sum(dim=-1, keepdim=True)
        context = context * shrink + part @ v
        largest = peak
    return context / total
