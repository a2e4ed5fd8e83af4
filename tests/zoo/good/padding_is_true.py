"""The library's layer hides keys where its mask is True, and the argument says so."""

from torch import nn


class Encoder(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        self.inner = nn.MultiheadAttention(d_model, heads, batch_first=True)

    def forward(self, x, padding):
        """x (batch, T, d_model), padding (batch, T): True on padding"""
        return self.inner(x, x, x, key_padding_mask=padding, need_weights=False)[0]
