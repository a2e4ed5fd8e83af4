"""Axial attention: positions attend along their row, then along their column."""

import torch
from torch import nn


class Axial(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.rows = nn.Linear(dim, 3 * dim, bias=False)
        self.columns = nn.Linear(dim, 3 * dim, bias=False)

    def along(self, lines, projection):
        q, k, v = projection(lines).chunk(3, dim=-1)
        dots = torch.einsum("bid,bjd->bij", q, k) * q.shape[-1] ** -0.5
        return torch.einsum("bij,bjd->bid", dots.softmax(dim=-1), v)

    def forward(self, x):
        b, height, width, d = x.shape
        out = self.along(x.reshape(b * height, width, d), self.rows).reshape(x.shape)
        turned = x.transpose(1, 2).reshape(b * width, height, d)
        back = self.along(turned, self.columns).reshape(b, width, height, d)
        return out + back.transpose(1, 2)
