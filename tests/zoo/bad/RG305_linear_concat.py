import torch
from torch import nn


class Attend(nn.Module):
    def __init__(self, d_s, d_h):
        super().__init__()
        self.v = nn.Linear(d_s + d_h, 1, bias=False)

    def forward(self, state, keys):
        """state (batch, d_s), keys (batch, T_enc, d_h): one decoder step"""
        states = state[:, None, :].expand(-1, keys.shape[1], -1)
        scores = self.v(torch.cat([states, keys], dim=-1))[..., 0]  # expect: RG305
        weights = torch.softmax(scores, dim=-1)
        return (weights[:, None, :] @ keys)[:, 0], weights
