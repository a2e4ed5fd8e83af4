"""A bias that grows with distance (ALiBi), per head, under a causal mask."""

import torch


def attend(x, heads):
    """x (batch, T, d_model)"""
    batch, T, d_model = x.shape
    part = x.view(batch, T, heads, d_model // heads).transpose(1, 2)
    scores = part @ part.mT / part.shape[-1] ** 0.5
    step = torch.arange(T)
    distance = step[None, :] - step[:, None]  # key less query: never positive where visible
    slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
    scores = scores + slopes[:, None, None].to(x.dtype) * distance
    scores = scores.masked_fill(distance > 0, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return (weights @ part).transpose(1, 2).reshape(batch, T, d_model), weights
