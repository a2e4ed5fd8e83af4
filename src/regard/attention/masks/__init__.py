"""Masks: which query may attend which key. Boolean, **True = may attend**, everywhere.

Every function here returns masks of the full shape ``(*batch, T_dec, T_enc)`` or ``(T_dec,
T_enc)``; combine them with ``&``. Outside there are four ways to say the same, and two of them
look alike and mean the opposite: ``torch.nn.MultiheadAttention`` and fairseq say True = ignore,
``torch.nn.functional.scaled_dot_product_attention``, Keras, JoeyNMT and this package say True =
attend. So other libraries' masks enter through ``from_`` and leave through ``to_``, and every
such function has the other side's name.
"""

from regard.attention.masks.hf import from_hf_additive, from_hf_padding, to_additive
from regard.attention.masks.keras import from_keras
from regard.attention.masks.patterns import (
    causal,
    corner_of,
    from_lengths,
    from_padding_ids,
    window,
)
from regard.attention.masks.torch_mha import from_torch_mha, to_torch_mha

__all__ = [
    "causal",
    "corner_of",
    "from_hf_additive",
    "from_hf_padding",
    "from_keras",
    "from_lengths",
    "from_padding_ids",
    "from_torch_mha",
    "to_additive",
    "to_torch_mha",
    "window",
]
