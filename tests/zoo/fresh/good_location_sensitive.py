import torch
from torch import nn
from torch.nn import functional as F


class LocationLayer(nn.Module):
    def __init__(self, attention_n_filters, attention_kernel_size, attention_dim):
        super().__init__()
        padding = int((attention_kernel_size - 1) / 2)
        self.location_conv = nn.Conv1d(
            2,
            attention_n_filters,
            kernel_size=attention_kernel_size,
            padding=padding,
            bias=False,
        )
        self.location_dense = nn.Linear(attention_n_filters, attention_dim, bias=False)

    def forward(self, attention_weights_cat):
        processed_attention = self.location_conv(attention_weights_cat)
        return self.location_dense(processed_attention.transpose(1, 2))


class LocationSensitiveAttention(nn.Module):
    def __init__(
        self, attention_rnn_dim, embedding_dim, attention_dim, n_filters=8, kernel_size=5
    ):
        super().__init__()
        self.query_layer = nn.Linear(attention_rnn_dim, attention_dim, bias=False)
        self.memory_layer = nn.Linear(embedding_dim, attention_dim, bias=False)
        self.v = nn.Linear(attention_dim, 1, bias=False)
        self.location_layer = LocationLayer(n_filters, kernel_size, attention_dim)
        self.score_mask_value = -float("inf")

    def forward(
        self, attention_hidden_state, memory, attention_weights, attention_weights_cum, mask
    ):
        """
        attention_hidden_state: (B, attention_rnn_dim), the attention RNN's last output
        memory: (B, T_in, embedding_dim), encoder outputs
        attention_weights, attention_weights_cum: (B, T_in), previous and cumulative weights
        mask: (B, T_in), True for padding
        """
        cat = torch.cat(
            (attention_weights.unsqueeze(1), attention_weights_cum.unsqueeze(1)), dim=1
        )
        processed_query = self.query_layer(attention_hidden_state.unsqueeze(1))
        energies = self.v(
            torch.tanh(processed_query + self.location_layer(cat) + self.memory_layer(memory))
        )
        alignment = energies.squeeze(-1).masked_fill(mask, self.score_mask_value)
        attention_weights = F.softmax(alignment, dim=1)
        attention_context = torch.bmm(attention_weights.unsqueeze(1), memory).squeeze(1)
        return attention_context, attention_weights
