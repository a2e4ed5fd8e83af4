"""Cosine attention: scores are divided by both lengths and by a learned temperature."""

import torch
from torch import nn


class CosineScores(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.tau = nn.Parameter(torch.full((1, num_heads, 1, 1), 0.5))

    def forward(self, x):
        b, n, d = x.shape
        qkv = self.qkv(x).view(b, n, 3, self.num_heads, d // self.num_heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        lengths = query.norm(dim=-1, keepdim=True) @ key.norm(dim=-1, keepdim=True).mT
        scores = query @ key.mT / lengths.clamp(min=1e-6) / self.tau.clamp(min=0.01)
        return (scores.softmax(dim=-1) @ value).transpose(1, 2).reshape(b, n, d)
