"""From a configuration to the decoder of :mod:`regard.nn` that it describes."""

from collections.abc import Callable
from typing import Any

from regard.nn.coverage import CoverageDecoder
from regard.nn.decoder import Decoder
from regard.nn.decoders import BahdanauDecoder, LuongDecoder, PlainDecoder
from regard.nn.input_feeding import InputFeedingDecoder
from regard.nn.local import LocalLuongDecoder
from regard.nn.location import LocationDecoder
from regard.nn.monotonic import MonotonicDecoder
from regard.nn.paper import PaperBahdanauDecoder
from regard.seq2seq.architecture import LOCAL, LUONG, ModelConfig

__all__ = ["decoder_of"]


def decoder_of(config: ModelConfig) -> Decoder:
    """Return an untrained decoder."""
    return _MAKERS[config.attention](config)


def _plain(config: ModelConfig) -> Decoder:
    return PlainDecoder(config.d_in, config.d_s, **_recurrence(config))


def _bahdanau(config: ModelConfig) -> Decoder:
    return BahdanauDecoder(**_additive(config), v_scale=config.v_scale, **_recurrence(config))


def _paper(config: ModelConfig) -> Decoder:
    return PaperBahdanauDecoder(**_additive(config), d_maxout=config.d_readout, bias=True)


def _coverage(config: ModelConfig) -> Decoder:
    return CoverageDecoder(**_additive(config), **_recurrence(config))


def _monotonic(config: ModelConfig) -> Decoder:
    return MonotonicDecoder(**_additive(config), **_recurrence(config))


def _location(config: ModelConfig) -> Decoder:
    assert config.filters is not None  # the configuration has settled both
    assert config.filter_width is not None
    return LocationDecoder(
        **_additive(config), k=config.filters, r=config.filter_width, **_recurrence(config)
    )


def _luong(config: ModelConfig) -> Decoder:
    kind = InputFeedingDecoder if config.input_feeding else LuongDecoder
    return kind(**_attended(config), **_score(config.attention, config), **_recurrence(config))


def _local(config: ModelConfig) -> Decoder:
    assert config.reach is not None  # the configuration has settled both
    assert config.score is not None
    return LocalLuongDecoder(
        **_attended(config),
        kind=config.attention.removeprefix("local-"),
        D=config.reach,
        **_score(config.score, config),
        **_recurrence(config),
    )


def _attended(config: ModelConfig) -> dict[str, Any]:
    return {"d_in": config.d_in, "d_s": config.d_s, "d_h": config.d_h}


def _additive(config: ModelConfig) -> dict[str, Any]:
    return {**_attended(config), "d_attn": config.d_attn}


def _score(score: str, config: ModelConfig) -> dict[str, Any]:
    # Only concat has a space of its own to compare in.
    return {"score": score, "d_attn": config.d_attn if score == "concat" else None}


def _recurrence(config: ModelConfig) -> dict[str, Any]:
    return {
        "cell": config.cell,
        "layers": config.decoder_layers,
        "dropout": config.dropout,
    }


_MAKERS: dict[str, Callable[[ModelConfig], Decoder]] = {
    "none": _plain,
    "bahdanau": _bahdanau,
    **dict.fromkeys(LUONG, _luong),
    **dict.fromkeys(LOCAL, _local),
    "coverage": _coverage,
    "location": _location,
    "monotonic": _monotonic,
    "bahdanau-paper": _paper,
}
