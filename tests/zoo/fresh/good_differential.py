import math
import torch
from torch import nn


class DiffAttention(nn.Module):
    """Differential attention: the difference of two softmax maps weighs the values."""

    def __init__(self, embed_dim, num_heads, lambda_init=0.8):
        super().__init__()
        self.num_heads, self.lambda_init = num_heads, lambda_init
        self.head_dim = embed_dim // num_heads // 2
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.k_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.v_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.lambda_q1 = nn.Parameter(torch.randn(self.head_dim) * 0.1)
        self.lambda_k1 = nn.Parameter(torch.randn(self.head_dim) * 0.1)
        self.lambda_q2 = nn.Parameter(torch.randn(self.head_dim) * 0.1)
        self.lambda_k2 = nn.Parameter(torch.randn(self.head_dim) * 0.1)
        self.subln = nn.LayerNorm(2 * self.head_dim)

    def forward(self, x):
        bsz, n, embed_dim = x.size()
        q = self.q_proj(x).view(bsz, n, 2 * self.num_heads, self.head_dim).transpose(1, 2)
        k = self.k_proj(x).view(bsz, n, 2 * self.num_heads, self.head_dim).transpose(1, 2)
        v = self.v_proj(x).view(bsz, n, self.num_heads, 2 * self.head_dim).transpose(1, 2)
        w = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(self.head_dim), dim=-1)
        lambda_1 = torch.exp((self.lambda_q1 * self.lambda_k1).sum())
        lambda_2 = torch.exp((self.lambda_q2 * self.lambda_k2).sum())
        lambda_full = lambda_1 - lambda_2 + self.lambda_init
        w = w.view(bsz, self.num_heads, 2, n, n)
        w = w[:, :, 0] - lambda_full * w[:, :, 1]
        out = self.subln(w @ v) * (1 - self.lambda_init)
        out = out.transpose(1, 2).reshape(bsz, n, embed_dim)
        return self.out_proj(out)
