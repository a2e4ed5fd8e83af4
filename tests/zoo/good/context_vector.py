"""One learned query for all texts: there is no query to ignore."""

import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self, d_h, d_attn):
        super().__init__()
        self.project = nn.Linear(d_h, d_attn)
        self.context = nn.Linear(d_attn, 1, bias=False)

    def forward(self, states, keep):
        """states (batch, T_enc, d_h), keep (batch, T_enc): True on real words"""
        scores = self.context(torch.tanh(self.project(states))).squeeze(-1)
        weights = torch.softmax(scores.masked_fill(~keep, float("-inf")), dim=-1)
        return torch.bmm(weights.unsqueeze(1), states).squeeze(1), weights
