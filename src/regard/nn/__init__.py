"""Attention for PyTorch: modules, multi-head attention, and decoders that form their query."""

from regard.nn.carrying import CarryingState
from regard.nn.coverage import CoverageDecoder
from regard.nn.decoder import Decoded, DecoderState, Stepped
from regard.nn.decoders import BahdanauDecoder, LuongDecoder, PlainDecoder
from regard.nn.input_feeding import InputFeedingDecoder
from regard.nn.local import LocalLuongDecoder
from regard.nn.location import LocationDecoder
from regard.nn.memory import Memory
from regard.nn.modules import AdditiveAttention, LuongAttention
from regard.nn.monotonic import MonotonicDecoder
from regard.nn.multihead import MultiHeadAttention
from regard.nn.paper import PaperBahdanauDecoder
from regard.nn.softmax import masked_softmax

__all__ = [
    "AdditiveAttention",
    "BahdanauDecoder",
    "CarryingState",
    "CoverageDecoder",
    "Decoded",
    "DecoderState",
    "InputFeedingDecoder",
    "LocalLuongDecoder",
    "LocationDecoder",
    "LuongAttention",
    "LuongDecoder",
    "Memory",
    "MonotonicDecoder",
    "MultiHeadAttention",
    "PaperBahdanauDecoder",
    "PlainDecoder",
    "Stepped",
    "masked_softmax",
]
