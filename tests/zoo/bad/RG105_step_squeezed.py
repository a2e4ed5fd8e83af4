import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    weights = torch.softmax(query @ keys.transpose(1, 2), dim=-1)
    context = torch.stack(
        [w @ k for w, k in zip(weights, keys, strict=True)]
    ).squeeze()  # expect: RG105
    return context, weights
