"""No scale on purpose: the initial weights hold it, as in T5."""

import torch
from torch import nn


class Unscaled(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.q = nn.Linear(d_model, d_model, bias=False)
        self.k = nn.Linear(d_model, d_model, bias=False)
        self.v = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x):
        """x (batch, T, d_model)"""
        weights = torch.softmax(self.q(x) @ self.k(x).mT, dim=-1)
        return weights @ self.v(x), weights
