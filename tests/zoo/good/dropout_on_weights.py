"""Dropout on the weights that make the context; the ones returned are whole."""

import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self, d_h):
        super().__init__()
        self.W = nn.Linear(d_h, d_h, bias=False)
        self.drop = nn.Dropout(0.5)

    def forward(self, query, keys):
        """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
        weights = torch.softmax(self.W(query) @ keys.transpose(1, 2), dim=-1)
        return self.drop(weights) @ keys, weights
