import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.heads, self.d_head = heads, d_model // heads
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        """x (batch, T, d_model)"""
        batch, T, d_model = x.shape
        q, k, v = (
            part.contiguous().view(batch, self.heads, T, self.d_head)  # expect: RG401
            for part in self.qkv(x).chunk(3, dim=-1)
        )
        weights = torch.softmax(q @ k.transpose(2, 3) / self.d_head**0.5, dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, T, d_model)
        return self.out(mixed), weights
