"""A resampler: latents read the media and themselves."""

import torch
from torch import nn


class Resampler(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, 2 * dim, bias=False)

    def forward(self, media, latents):
        q = self.to_q(latents) * latents.shape[-1] ** -0.5
        k, v = self.to_kv(torch.cat((media, latents), dim=1)).chunk(2, dim=-1)
        scores = q @ k.transpose(1, 2)
        scores = scores - scores.amax(dim=-1, keepdim=True).detach()
        return scores.softmax(dim=-1) @ v
