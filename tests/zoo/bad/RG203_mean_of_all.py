import torch


def attend(x):
    """x (batch, T, d_model); a position sees itself and what came before"""
    T = x.shape[1]
    later = torch.ones(T, T, dtype=torch.bool).triu(1)
    query = x + x.mean(dim=1, keepdim=True)  # expect: RG203
    scores = query @ x.transpose(1, 2) / x.shape[-1] ** 0.5
    weights = torch.softmax(scores.masked_fill(later, float("-inf")), dim=-1)
    return weights @ x, weights
