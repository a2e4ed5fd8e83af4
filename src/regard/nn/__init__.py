"""Attention for PyTorch: modules, multi-head attention, and decoders that form their query."""

from regard.nn.decoder import Decoded, DecoderState, Stepped
from regard.nn.decoders import BahdanauDecoder, LuongDecoder, PlainDecoder
from regard.nn.memory import Memory
from regard.nn.modules import AdditiveAttention, LuongAttention
from regard.nn.multihead import MultiHeadAttention
from regard.nn.softmax import masked_softmax

__all__ = [
    "AdditiveAttention",
    "BahdanauDecoder",
    "Decoded",
    "DecoderState",
    "LuongAttention",
    "LuongDecoder",
    "Memory",
    "MultiHeadAttention",
    "PlainDecoder",
    "Stepped",
    "masked_softmax",
]
