"""A decoder layer: steps read the steps before them, then the memory."""

import torch
from torch import nn


class DecoderLayer(nn.Module):
    def __init__(self, d_model, nhead):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(d_model, nhead, 2 * d_model, batch_first=True)

    def forward(self, tgt, memory, src_padding_mask):
        n = tgt.shape[1]
        ahead = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)
        return self.layer(tgt, memory, ahead, memory_key_padding_mask=src_padding_mask)
