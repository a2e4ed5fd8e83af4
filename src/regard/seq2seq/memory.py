"""Refusing a model that cannot fit into memory, before anything is allocated."""

import os

import torch

from regard.errors import InputError, explain
from regard.seq2seq.model import ModelConfig, Seq2Seq

__all__ = ["check_memory", "free_memory"]

# Weights, gradients and the optimizer's two averages, in float32.
_BYTES = 4 * 4


def check_memory(config: ModelConfig, *, copies: int = 1) -> None:
    """Refuse a model whose training needs more memory than this machine has free.

    Parameters
    ----------
    config : ModelConfig
    copies : int
        Of the weights, that are kept besides: those of the best looks, a running average.

    Raises
    ------
    InputError
        The weights and what training keeps beside them are too large. What a batch needs is
        not counted.
    """
    free = free_memory()
    try:
        # The meta device gives tensors shapes and no memory.
        with torch.device("meta"):
            count = sum(parameter.numel() for parameter in Seq2Seq(config).parameters())
    except RuntimeError as error:  # its sizes overflow 64 bits
        raise InputError(
            _too_large(config, "more weights than can be counted", free)
        ) from error
    needed = count * (_BYTES + 4 * copies)
    if free is not None and needed > free:
        got = f"{count:,} weights, about {_gigabytes(needed)} while training"
        raise InputError(_too_large(config, got, free))


def free_memory() -> int | None:
    """Return how many bytes may still be used, or None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def _too_large(config: ModelConfig, got: str, free: int | None) -> str:
    return explain(
        "the model is too large for this machine",
        expected="a model that fits into memory"
        if free is None
        else f"at most {_gigabytes(free)}, which is free",
        got=got,
        because=f"encoder states of {config.d_hidden:,}, decoder states of {config.d_s:,}",
        help="choose a smaller --hidden or --state",
    )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
