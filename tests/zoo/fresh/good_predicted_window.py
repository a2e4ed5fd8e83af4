"""Local attention: the alignment is favoured near a place that the state predicts."""

import torch
from torch import nn


class PredictedWindow(nn.Module):
    def __init__(self, hidden_size, sigma=1.5):
        super().__init__()
        self.sigma = sigma
        self.W_p = nn.Linear(hidden_size, hidden_size, bias=False)
        self.v_p = nn.Linear(hidden_size, 1, bias=False)
        self.W_a = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, h_t, h_s):
        n = h_s.size(1)
        centre = n * torch.sigmoid(self.v_p(torch.tanh(self.W_p(h_t))))
        align = torch.bmm(self.W_a(h_s), h_t.unsqueeze(2)).squeeze(2).softmax(dim=1)
        s = torch.arange(n).unsqueeze(0)
        weights = align * torch.exp(-((s - centre) ** 2) / (2 * self.sigma**2))
        return torch.bmm(weights.unsqueeze(1), h_s).squeeze(1)
