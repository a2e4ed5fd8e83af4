import torch
from torch import nn


class CappedAttention(nn.Module):
    """Causal self-attention of a decoder: few key heads, turned by position, scores capped."""

    def __init__(self, width, n_heads, n_key_heads, bound=15.0):
        super().__init__()
        self.n_heads, self.n_key_heads, self.bound = n_heads, n_key_heads, bound
        self.size = width // n_heads
        self.to_q = nn.Linear(width, n_heads * self.size, bias=False)
        self.to_k = nn.Linear(width, n_key_heads * self.size, bias=False)
        self.to_v = nn.Linear(width, n_key_heads * self.size, bias=False)
        self.to_out = nn.Linear(n_heads * self.size, width, bias=False)

    def rotate(self, x):
        rate = 10000 ** (-torch.arange(0, self.size, 2, device=x.device) / self.size)
        angle = torch.arange(x.shape[-2], device=x.device)[:, None] * rate
        cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
        one, two = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-two, one), dim=-1) * sin

    def forward(self, x, padding=None):
        """x: (batch, length, width); padding: (batch, length), True where there is no token."""
        b, length, _ = x.shape
        q = self.to_q(x).view(b, length, self.n_heads, self.size).transpose(1, 2)
        k = self.to_k(x).view(b, length, self.n_key_heads, self.size).transpose(1, 2)
        v = self.to_v(x).view(b, length, self.n_key_heads, self.size).transpose(1, 2)
        times = self.n_heads // self.n_key_heads
        k, v = k.repeat_interleave(times, dim=1), v.repeat_interleave(times, dim=1)
        scores = self.rotate(q) @ self.rotate(k).mT / self.size**0.5
        scores = torch.tanh(scores / self.bound) * self.bound
        hidden = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
        if padding is not None:
            hidden = hidden | padding[:, None, None, :]
        weights = scores.masked_fill(hidden, torch.finfo(x.dtype).min).softmax(dim=-1)
        return self.to_out((weights @ v).transpose(1, 2).reshape(b, length, -1))
