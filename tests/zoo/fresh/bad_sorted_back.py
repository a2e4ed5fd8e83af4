"""An LSTM encoder with Luong attention; sentences are sorted by length for the encoder."""

import torch
from torch import nn


class LuongSeq2Seq(nn.Module):
    def __init__(self, emb_size, hidden_size):
        super().__init__()
        self.encoder = nn.LSTM(emb_size, hidden_size, batch_first=True)
        self.W = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, source, lengths, state):
        """source: (batch, T_enc, emb), lengths: (batch,), state: (batch, T_dec, hidden)."""
        ordered, order = lengths.sort(descending=True)
        packed = nn.utils.rnn.pack_padded_sequence(source[order], ordered, batch_first=True)
        memory, _ = self.encoder(packed)
        memory, _ = nn.utils.rnn.pad_packed_sequence(
            memory, batch_first=True, total_length=source.size(1)
        )
        memory = memory[order]  # expect: RG801
        scores = state @ self.W(memory).transpose(1, 2)
        steps = torch.arange(source.size(1))
        scores = scores.masked_fill(steps >= lengths[:, None, None], float("-inf"))
        weights = scores.softmax(dim=-1)
        return weights @ memory, weights
