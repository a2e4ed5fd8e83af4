"""Queries that are the keys as well; a token hardly reads itself."""

import torch
import torch.nn.functional as F
from torch import nn


class SharedQueryKey(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.to_qk = nn.Linear(dim, dim, bias=False)
        self.to_v = nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        q, v = self.to_qk(x), self.to_v(x)
        k = F.normalize(q, dim=-1)
        dots = torch.einsum("bid,bjd->bij", q, k) * x.shape[-1] ** -0.5
        here = torch.arange(x.shape[1])
        dots[:, here, here] = -5e4
        return dots.softmax(dim=-1) @ v
