"""The weights of the step before move the scores: order matters by intent."""

import torch
from torch import nn


class LocationSensitive(nn.Module):
    def __init__(self, d_s, d_h, d_attn):
        super().__init__()
        self.query = nn.Linear(d_s, d_attn, bias=False)
        self.key = nn.Linear(d_h, d_attn)
        self.filter = nn.Conv1d(1, d_attn, 3, padding=1, bias=False)
        self.v = nn.Linear(d_attn, 1, bias=False)

    def forward(self, state, keys, previous):
        """state (batch, d_s), keys (batch, T_enc, d_h), previous (batch, T_enc) weights"""
        where = self.filter(previous[:, None, :]).transpose(1, 2)
        pairs = torch.tanh(self.query(state)[:, None, :] + self.key(keys) + where)
        weights = torch.softmax(self.v(pairs)[..., 0], dim=-1)
        return torch.einsum("bt,btd->bd", weights, keys), weights
