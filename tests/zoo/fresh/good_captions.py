"""Soft attention over the pixels of a picture, for captions."""

from torch import nn


class Attention(nn.Module):
    """Attention over a picture, given the state of the decoder.

    :param encoder_dim: feature size of encoded images
    :param decoder_dim: size of decoder's RNN
    :param attention_dim: size of the attention network
    """

    def __init__(self, encoder_dim, decoder_dim, attention_dim):
        super().__init__()
        self.encoder_att = nn.Linear(encoder_dim, attention_dim)
        self.decoder_att = nn.Linear(decoder_dim, attention_dim)
        self.full_att = nn.Linear(attention_dim, 1)
        self.relu = nn.ReLU()
        self.softmax = nn.Softmax(dim=1)

    def forward(self, encoder_out, decoder_hidden):
        """Attend.

        :param encoder_out: encoded images, (batch_size, num_pixels, encoder_dim)
        :param decoder_hidden: previous decoder output, (batch_size, decoder_dim)
        :return: attention weighted encoding, weights
        """
        att1 = self.encoder_att(encoder_out)  # (batch_size, num_pixels, attention_dim)
        att2 = self.decoder_att(decoder_hidden)  # (batch_size, attention_dim)
        att = self.full_att(self.relu(att1 + att2.unsqueeze(1))).squeeze(2)
        alpha = self.softmax(att)  # (batch_size, num_pixels)
        awe = (encoder_out * alpha.unsqueeze(2)).sum(dim=1)  # (batch_size, encoder_dim)
        return awe, alpha
