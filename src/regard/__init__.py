"""Attention you can compute, train, check, see and question.

>>> import regard as rg
>>> states = [[1.0, 0.0, 0.2], [0.5, 0.5, 0.1], [0.1, 0.9, 0.3]]
>>> context, weights = rg.dot_attention([0.9, 0.1, 0.2], states)
>>> [round(weight, 3) for weight in weights]
[0.464, 0.305, 0.231]

Names are found when they are first used: importing regard loads no array library.
"""

import importlib
from typing import TYPE_CHECKING, Any

from regard.version import __version__

if TYPE_CHECKING:
    from regard import audit, check
    from regard.attention import coverage, masks, monotonic, reference, scores
    from regard.attention.attend import Attended, attend, self_attention
    from regard.attention.heads import merge_heads, multi_head, split_heads
    from regard.attention.local import local_attend
    from regard.attention.sparse import entmax15, sparsemax
    from regard.attention.steps import (
        additive_attention,
        concat_attention,
        dot_attention,
        general_attention,
    )
    from regard.attention.weights import softmax
    from regard.check.watch import watch
    from regard.errors import (
        BackendError,
        ConventionError,
        InputError,
        MaskError,
        RegardError,
        ShapeError,
    )
    from regard.kernels.choose import backend

_HOMES = {
    "audit": "regard.audit",
    "check": "regard.check",
    "coverage": "regard.attention.coverage",
    "monotonic": "regard.attention.monotonic",
    "testing": "regard.testing",
    "local_attend": "regard.attention.local",
    "entmax15": "regard.attention.sparse",
    "sparsemax": "regard.attention.sparse",
    "masks": "regard.attention.masks",
    "reference": "regard.attention.reference",
    "scores": "regard.attention.scores",
    "nn": "regard.nn",
    "Attended": "regard.attention.attend",
    "attend": "regard.attention.attend",
    "self_attention": "regard.attention.attend",
    "merge_heads": "regard.attention.heads",
    "multi_head": "regard.attention.heads",
    "split_heads": "regard.attention.heads",
    "additive_attention": "regard.attention.steps",
    "backend": "regard.kernels.choose",
    "concat_attention": "regard.attention.steps",
    "dot_attention": "regard.attention.steps",
    "general_attention": "regard.attention.steps",
    "softmax": "regard.attention.weights",
    "watch": "regard.check.watch",
    "load_ipython_extension": "regard.check.notebook",
    "BackendError": "regard.errors",
    "ConventionError": "regard.errors",
    "InputError": "regard.errors",
    "MaskError": "regard.errors",
    "RegardError": "regard.errors",
    "ShapeError": "regard.errors",
}

_MODULES = {
    "audit",
    "check",
    "coverage",
    "masks",
    "monotonic",
    "nn",
    "reference",
    "scores",
    "testing",
}

__all__ = [
    "Attended",
    "BackendError",
    "ConventionError",
    "InputError",
    "MaskError",
    "RegardError",
    "ShapeError",
    "__version__",
    "additive_attention",
    "attend",
    "audit",
    "backend",
    "check",
    "concat_attention",
    "coverage",
    "dot_attention",
    "entmax15",
    "general_attention",
    "local_attend",
    "masks",
    "merge_heads",
    "monotonic",
    "multi_head",
    "reference",
    "scores",
    "self_attention",
    "softmax",
    "sparsemax",
    "split_heads",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'regard' has no attribute {name!r}")
    module = importlib.import_module(_HOMES[name])
    found = module if name in _MODULES else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
