"""Masked after the softmax, and divided by what is left: the same as masking before.

The scores are bounded, so what is left cannot underflow.
"""

import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self, d_s, d_h, d_attn):
        super().__init__()
        self.query = nn.Linear(d_s, d_attn)
        self.key = nn.Linear(d_h, d_attn, bias=False)
        self.v = nn.Linear(d_attn, 1, bias=False)

    def forward(self, state, keys, keep):
        """state (batch, d_s), keys (batch, T_enc, d_h), keep (batch, T_enc): real keys"""
        pairs = torch.tanh(self.query(state).unsqueeze(1) + self.key(keys))
        weights = torch.softmax(self.v(pairs).squeeze(-1), dim=-1) * keep
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return torch.bmm(weights.unsqueeze(1), keys).squeeze(1), weights
