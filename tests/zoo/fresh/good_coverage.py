import torch
import torch.nn as nn
import torch.nn.functional as F


class CoverageAttention(nn.Module):
    """Attention of See et al. (2017): the coverage vector is an input of the score."""

    def __init__(self, hidden_dim):
        super().__init__()
        self.W_h = nn.Linear(hidden_dim * 2, hidden_dim * 2, bias=False)
        self.W_c = nn.Linear(1, hidden_dim * 2, bias=False)
        self.decode_proj = nn.Linear(hidden_dim * 2, hidden_dim * 2)
        self.v = nn.Linear(hidden_dim * 2, 1, bias=False)

    def forward(self, s_t_hat, encoder_outputs, enc_padding_mask, coverage):
        b, t_k, n = encoder_outputs.size()
        encoder_feature = self.W_h(encoder_outputs)
        dec_fea = self.decode_proj(s_t_hat).unsqueeze(1).expand(b, t_k, n)
        att_features = encoder_feature + dec_fea + self.W_c(coverage.unsqueeze(-1))
        scores = self.v(torch.tanh(att_features)).squeeze(-1)
        attn_dist_ = F.softmax(scores, dim=1) * enc_padding_mask
        normalization_factor = attn_dist_.sum(1, keepdim=True)
        attn_dist = attn_dist_ / normalization_factor
        c_t = torch.bmm(attn_dist.unsqueeze(1), encoder_outputs).squeeze(1)
        coverage = coverage + attn_dist
        return c_t, attn_dist, coverage
