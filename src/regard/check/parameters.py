"""Numbers of parameters and of random generators, the same in every version of a text."""

import hashlib
import random
import re
import sys
from typing import Any

import numpy as np

__all__ = ["redraw", "seed_all"]


def redraw(module: Any) -> None:
    """Give every parameter numbers that depend on its name and shape alone."""
    import torch  # noqa: PLC0415

    norms = {
        id(p)
        for m in module.modules()
        if "Norm" in type(m).__name__
        for p in m.parameters(recurse=False)
    }
    padded = {
        id(m.weight): m.padding_idx
        for m in module.modules()
        if isinstance(m, torch.nn.Embedding) and m.padding_idx is not None
    }
    with torch.no_grad():
        for name, p in module.named_parameters():
            if not p.is_floating_point() or p.numel() == 0:
                continue
            digest = hashlib.sha256(_plain(name).encode()).digest()
            generator = torch.Generator().manual_seed(int.from_bytes(digest[:6], "big"))
            noise = torch.randn(p.shape, generator=generator)
            last = name.rsplit(".", 1)[-1]
            if _is_factor(p):
                fresh = p * (1.0 + 0.15 * noise)  # learned factors keep their magnitude
            elif p.dim() >= 2:
                fan = p[0].numel() if p.shape[0] > 1 or p.dim() > 2 else p.numel()
                spread = 1.3 if fan == 1 else 1.2
                fresh = noise * spread / fan**0.5
                if "embed" in name.lower() or id(p) in padded:
                    fresh = noise * 0.8
            elif "bias" in last:
                fresh = 0.2 * noise
            elif id(p) in norms:
                fresh = 1.0 + 0.15 * noise
            elif p.numel() == 1:
                fresh = 0.8 + 0.2 * noise.tanh()
            else:
                fresh = 1.5 * noise / p.numel() ** 0.5
            p.copy_(fresh.to(p.dtype))
            if id(p) in padded:
                p[padded[id(p)]] = 0.0


def _is_factor(p: Any) -> bool:
    """Whether a parameter is one number to begin with, given to each head or feature.

    It may lie along one axis of several, as ``(1, heads, 1, 1)``, and is clamped or has its
    logarithm taken: it must not change its sign.
    """
    if p.numel() < 2 or max(p.shape) != p.numel():
        return False
    first = p.flatten()[0]
    plain = (0.0, 1.0) if p.dim() == 1 else (0.0,)
    return bool((p == first).all()) and first.item() not in plain


def _plain(name: str) -> str:
    """A parameter's name without what counts the objects of a process, as Keras' paths do."""
    return re.sub(r"_\d+(?=/)", "", name)


def seed_all(seed: int) -> None:
    """Seed every generator that the user's code may draw from."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - the user's code may read the global generator
    torch = sys.modules.get("torch")
    if torch is not None:
        # torch.manual_seed formats a stack for every device it has not woken up yet.
        torch.default_generator.manual_seed(seed)
        if torch.cuda.is_initialized():
            torch.cuda.manual_seed_all(seed)
