"""One layer of graph attention: a node attends to its neighbours."""

import torch
from torch import nn
import torch.nn.functional as F


class GraphAttention(nn.Module):
    def __init__(self, in_features, out_features):
        super().__init__()
        self.W = nn.Linear(in_features, out_features, bias=False)
        self.a_self = nn.Linear(out_features, 1, bias=False)
        self.a_other = nn.Linear(out_features, 1, bias=False)

    def forward(self, nodes, neighbours):
        """nodes: (batch, T, in_features).

        neighbours: (batch, T, T) boolean, [b, i, j] True where node i may attend to node j.
        """
        h = self.W(nodes)
        e = self.a_self(h) + self.a_other(h).transpose(1, 2)  # [b, i, j]
        e = F.leaky_relu(e, 0.2)
        e = e.masked_fill(~neighbours.transpose(1, 2), float("-inf"))  # expect: RG208
        weights = torch.nan_to_num(e.softmax(dim=-1))
        return weights @ h, weights
