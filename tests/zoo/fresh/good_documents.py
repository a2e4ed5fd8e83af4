"""Word attention of a hierarchical document classifier: one learned query pools a sentence."""

import torch
from torch import nn


class WordAttention(nn.Module):
    def __init__(self, emb_size, hidden_size, att_size):
        super().__init__()
        self.rnn = nn.GRU(emb_size, hidden_size, bidirectional=True, batch_first=True)
        self.project = nn.Linear(2 * hidden_size, att_size)
        self.context_vector = nn.Linear(att_size, 1, bias=False)

    def forward(self, words, lengths):
        """words: (batch, T_enc, emb_size); lengths: (batch,) numbers of real words."""
        packed = nn.utils.rnn.pack_padded_sequence(
            words, lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = self.rnn(packed)
        states, _ = nn.utils.rnn.pad_packed_sequence(
            states, batch_first=True, total_length=words.size(1)
        )
        scores = self.context_vector(torch.tanh(self.project(states))).squeeze(2)
        steps = torch.arange(words.size(1))
        scores = scores.masked_fill(steps[None, :] >= lengths[:, None], float("-inf"))
        alphas = torch.softmax(scores, dim=1)  # (batch, T_enc)
        sentence = (states * alphas.unsqueeze(2)).sum(dim=1)
        return sentence, alphas
