"""Talking heads: learned maps between the heads, before the softmax and after it."""

from torch import nn


class TalkingHeads(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.before = nn.Linear(num_heads, num_heads)
        self.after = nn.Linear(num_heads, num_heads)
        self.out = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, C // self.num_heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) * (C // self.num_heads) ** -0.5
        scores = self.before(scores.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        weights = self.after(scores.softmax(dim=-1).permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
        return self.out((weights @ v).transpose(1, 2).reshape(B, N, C))
