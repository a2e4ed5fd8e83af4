"""What benchmarks/additive.py and its companions share: sizes, allocators, the processor."""

import platform
from pathlib import Path

__all__ = ["ALLOCATORS", "SIZES", "Size", "processor"]

Size = tuple[int, int, int, int]

SIZES: dict[str, Size] = {  # batch, T_dec, T_enc, d_attn
    "S1": (8, 64, 64, 256),
    "M": (16, 100, 100, 256),
    "D": (64, 1, 50, 512),
    "S2": (4, 512, 512, 256),
}

ALLOCATORS = {
    "default": {},
    "keeps pages": {
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "20000000000",
        "MALLOC_TOP_PAD_": "268435456",
    },
}


def processor() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
