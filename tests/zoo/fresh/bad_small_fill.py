"""Dot-product attention with lengths, as a textbook has it: masked softmax, then the sum."""

import math

import torch
from torch import nn


def sequence_mask(x, valid_len, value=0.0):
    """Put ``value`` at the positions of (rows, n) at or past each row's length."""
    steps = torch.arange(x.size(1))[None, :]
    return x.masked_fill(steps >= valid_len[:, None], value)


def masked_softmax(scores, valid_lens):
    shape = scores.shape
    valid_lens = torch.repeat_interleave(valid_lens, shape[1])
    flat = sequence_mask(scores.reshape(-1, shape[-1]), valid_lens, value=1e-6)  # expect: RG202
    return nn.functional.softmax(flat.reshape(shape), dim=-1)


class DotProductAttention(nn.Module):
    """queries: (batch, T_dec, d), keys: (batch, T_enc, d), values: (batch, T_enc, d_v).

    valid_lens: (batch,) the number of keys that may be attended to.
    """

    def forward(self, queries, keys, values, valid_lens):
        d = queries.shape[-1]
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(d)
        weights = masked_softmax(scores, valid_lens)
        return torch.bmm(weights, values)
