"""Attention between the channels of a map; like channels read each other least."""

import torch
from torch import nn


class ChannelAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1))
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        batchsize, C, height, width = x.size()
        flat = x.view(batchsize, C, -1)
        energy = torch.bmm(flat, flat.permute(0, 2, 1))
        energy = torch.max(energy, -1, keepdim=True)[0].expand_as(energy) - energy
        out = torch.bmm(self.softmax(energy), flat)
        return self.gamma * out.view(batchsize, C, height, width) + x
