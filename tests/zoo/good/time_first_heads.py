"""Time first, with batch and heads folded into one axis by a view: right, since both follow."""

import torch


def attend(x, heads):
    """x (T, batch, d_model)"""
    T, batch, d_model = x.shape
    folded = x.contiguous().view(T, batch * heads, d_model // heads).transpose(0, 1)
    scores = torch.bmm(folded, folded.transpose(1, 2)) / (d_model // heads) ** 0.5
    weights = torch.softmax(scores, dim=-1)
    context = torch.bmm(weights, folded).transpose(0, 1).contiguous().view(T, batch, d_model)
    return context, weights.view(batch, heads, T, T)
