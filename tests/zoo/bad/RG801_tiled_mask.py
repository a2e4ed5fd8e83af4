import torch


def attend(x, keep, heads):
    """x (batch, T, d_model), keep (batch, T): True on real words"""
    batch, T, d_model = x.shape
    part = x.view(batch, T, heads, d_model // heads).transpose(1, 2)
    part = part.reshape(batch * heads, T, d_model // heads)
    hidden = ~keep.repeat(heads, 1)[:, None, :]  # expect: RG801
    scores = (part @ part.transpose(1, 2)) / part.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
    mixed = (weights @ part).view(batch, heads, T, -1).transpose(1, 2)
    return mixed.reshape(batch, T, d_model), weights.view(batch, heads, T, T)
