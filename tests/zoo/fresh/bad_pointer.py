"""A pointer network's decoder: each step points at one input that no step before pointed at."""

import torch
from torch import nn


class Pointer(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.W1 = nn.Linear(hidden_size, hidden_size, bias=False)
        self.W2 = nn.Linear(hidden_size, hidden_size, bias=False)
        self.v = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, encoder_outputs, decoder_states):
        """encoder_outputs: (batch, T_enc, hidden); decoder_states: (batch, T_dec, hidden).

        Returns the probabilities of pointing, (batch, T_dec, T_enc).
        """
        batch, n, _ = encoder_outputs.shape
        visited = torch.zeros(batch, n, dtype=torch.bool)
        keys = self.W1(encoder_outputs)
        steps = []
        for t in range(decoder_states.size(1)):
            query = self.W2(decoder_states[:, t]).unsqueeze(1)
            scores = self.v(torch.tanh(keys + query)).squeeze(-1)
            scores = scores.masked_fill(visited, float("-inf"))
            weights = scores.softmax(dim=-1)
            steps.append(weights)
            chosen = weights.argmax(dim=-1)
            visited = visited.clone()
            visited[:, chosen] = True  # expect: RG801
        return torch.stack(steps, dim=1)
