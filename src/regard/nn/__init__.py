"""Attention for PyTorch: modules, multi-head attention, and decoders that form their query.

Names are found when they are first used: :mod:`regard.nn.keras` works without PyTorch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOMES = {
    "AdditiveAttention": "modules",
    "BahdanauDecoder": "decoders",
    "CarryingState": "carrying",
    "CoverageDecoder": "coverage",
    "Decoded": "decoder",
    "DecoderState": "decoder",
    "InputFeedingDecoder": "input_feeding",
    "LocalLuongDecoder": "local",
    "LocationDecoder": "location",
    "LuongAttention": "modules",
    "LuongDecoder": "decoders",
    "Memory": "memory",
    "MonotonicDecoder": "monotonic",
    "MultiHeadAttention": "multihead",
    "PaperBahdanauDecoder": "paper",
    "PlainDecoder": "decoders",
    "Stepped": "decoder",
    "masked_softmax": "softmax",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
