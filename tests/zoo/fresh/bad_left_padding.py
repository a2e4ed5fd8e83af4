"""Prompts are padded on the left; learned positions count real tokens only."""

import torch
from torch import nn


class LeftPadded(nn.Module):
    def __init__(self, width, longest):
        super().__init__()
        self.places = nn.Embedding(longest, width)
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, attention_mask):
        n = x.size(1)
        place = torch.arange(n).expand(x.size(0), n)  # expect: RG202
        query, key, value = self.qkv(x + self.places(place)).chunk(3, dim=-1)
        seen = torch.ones(n, n, dtype=torch.bool).tril() & attention_mask[:, None, :]
        seen = seen | torch.eye(n, dtype=torch.bool)  # padding reads itself, or nothing
        scores = query @ key.transpose(1, 2) / x.size(-1) ** 0.5
        scores = scores.masked_fill(~seen, torch.finfo(scores.dtype).min)
        return scores.softmax(dim=-1) @ value
