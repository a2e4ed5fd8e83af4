"""An additive score with ReLU in place of tanh, as in Show, Attend and Tell."""

import torch


def attend(regions, state, W, U, v):
    """regions (batch, T_enc, d_h), state (batch, d_s): where to look in a picture"""
    scores = torch.relu(regions @ U + (state @ W).unsqueeze(1)) @ v
    weights = scores.softmax(dim=1)
    return (regions * weights.unsqueeze(2)).sum(dim=1), weights
