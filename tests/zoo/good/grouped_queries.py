"""Several query heads share one key head: neighbours share, so keys are repeated in place."""

import torch
from torch import nn


class GroupedQueries(nn.Module):
    def __init__(self, d_model, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.d_head = heads, kv_heads, d_model // heads
        self.q = nn.Linear(d_model, d_model, bias=False)
        self.k = nn.Linear(d_model, kv_heads * self.d_head, bias=False)
        self.v = nn.Linear(d_model, kv_heads * self.d_head, bias=False)

    def forward(self, x):
        """x (batch, T, d_model)"""
        batch, T, _ = x.shape
        q = self.q(x).view(batch, T, self.heads, self.d_head).transpose(1, 2)
        k = self.k(x).view(batch, T, self.kv_heads, self.d_head).transpose(1, 2)
        v = self.v(x).view(batch, T, self.kv_heads, self.d_head).transpose(1, 2)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        weights = torch.softmax(q @ k.mT * self.d_head**-0.5, dim=-1)
        return (weights @ v).transpose(1, 2).reshape(batch, T, -1), weights
