"""Causal self-attention with a learned bias for every distance."""

import torch
from torch import nn


class RelativeAttention(nn.Module):
    def __init__(self, d_model, heads, longest=8):
        super().__init__()
        self.heads, self.longest = heads, longest
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.bias = nn.Embedding(longest + 1, heads)  # one row a distance

    def forward(self, x):
        """x: (batch, T, d_model); a position attends to itself and those before it."""
        b, t, d = x.shape
        q, k, v = (
            part.view(b, t, self.heads, d // self.heads).transpose(1, 2)
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        i, j = torch.arange(t)[:, None], torch.arange(t)[None, :]
        distance = (j - i).clamp(0, self.longest)  # expect: RG504
        scores = q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5
        scores = scores + self.bias(distance).permute(2, 0, 1)
        scores = scores.masked_fill(j > i, float("-inf"))
        y = scores.softmax(dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(b, t, d))
