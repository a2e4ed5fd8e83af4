"""One step of decoding after the cached ones; time is the first axis."""

import math

import torch
from torch import nn


class CachedStep(nn.Module):
    """One decoding step with the keys and values of the steps before it."""

    def __init__(self, depth):
        super().__init__()
        self.depth = depth
        self.project = nn.Linear(depth, 3 * depth, bias=False)

    def forward(self, inputs, previous_keys, previous_values):
        queries, keys, values = torch.split(self.project(inputs), self.depth, dim=2)
        keys = torch.cat([previous_keys, keys], dim=0)
        values = torch.cat([previous_values, values], dim=0)
        logits = torch.einsum("qbd,kbd->bqk", queries, keys) / math.sqrt(self.depth)
        contexts = torch.einsum("bqk,kbd->qbd", torch.softmax(logits, dim=-1), values)
        return contexts, keys, values
