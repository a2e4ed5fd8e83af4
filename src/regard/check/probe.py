"""Inputs whose axes, examples and padding can be told apart.

All inputs are NumPy arrays by argument name. Scores stay of order one: a saturated softmax
hides influence. Every example has another number of real positions, the second has them all.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.check.contract import Contract
from regard.check.sizes import Sizes, names_in

__all__ = ["Mask", "Probe"]

# The first example is padded too: code that takes its mask for everyone shows.
_PAD = (2, 0, 3, 1, 4)
_SEQUENCES = ("T_enc", "T", "T_dec", "T_mem")
_FEATURES = ("d_", "heads", "kv_heads", "dirs", "n_", "vocab", "layers")


@dataclass(frozen=True)
class Mask:
    """A mask argument: its kind, the token of the axis it restricts, who is real."""

    name: str
    kind: str
    axis: str
    real: np.ndarray  # (batch, axis) boolean, True on real positions; (1, axis) if shared


class Probe:
    """Arguments of one call, and what is known about them.

    Parameters
    ----------
    contract : Contract
        Axes and kinds of the arguments.
    sizes : Sizes
        Sizes of the named axes.
    seed : int
        Another seed gives other numbers and the same masks.
    choice : int
        Picks from ``values`` that are lists.
    full : bool
        No padding at all.
    """

    def __init__(
        self,
        contract: Contract,
        sizes: Sizes,
        *,
        seed: int = 0,
        choice: int = 0,
        full: bool = False,
    ) -> None:
        self.contract, self.sizes, self.seed, self.full = contract, sizes, seed, full
        self.masks: dict[str, Mask] = {}
        self.args: dict[str, Any] = {}
        for name, axes in contract.inputs.items():
            if name in contract.values:
                value = contract.values[name]
                if isinstance(value, list):
                    value = value[choice % len(value)]
                self.args[name] = sizes.value(value)
            else:
                self.args[name] = self._make(name, axes)

    def noise(self, name: str, shape: tuple[int, ...], salt: int = 0) -> np.ndarray:
        """Reproducible N(0, 1) numbers for an argument."""
        digest = hashlib.sha256(f"{name}/{self.seed}/{salt}".encode()).digest()
        return np.random.default_rng(list(digest[:8])).standard_normal(shape)

    def floats(self) -> Iterator[str]:
        """Names of the arguments that carry content: floats that are no mask."""
        for name, value in self.args.items():
            kind = self.contract.kinds.get(name)
            if kind in (None, "zero_padded", "bias", "weights") and (
                isinstance(value, np.ndarray) and np.issubdtype(value.dtype, np.floating)
            ):
                yield name

    def content(self) -> Iterator[str]:
        """Names of the arguments that carry content of any kind: floats and token ids."""
        yield from self.floats()
        for name in self.args:
            if self.contract.kinds.get(name, "").startswith(
                ("token_ids", "indices", "state_t")
            ):
                yield name

    def is_parameter(self, name: str) -> bool:
        """Whether an argument is a learned array: features only, no batch and no time."""
        tokens = self.contract.axes(name)
        return bool(tokens) and all(
            all(n.startswith(_FEATURES) for n in names_in(t)) for t in tokens
        )

    def axis(self, name: str, token: str) -> int | None:
        """Index of an axis token in an input, or None."""
        tokens = self.contract.axes(name)
        return tokens.index(token) if token in tokens else None

    def _make(self, name: str, axes: str) -> Any:  # noqa: PLR0911 - one a kind
        kind = self.contract.kinds.get(name)
        shape = self.sizes.shape(axes)
        if kind is None or kind in ("bias", "zero_padded"):
            x = self.noise(name, shape) * self._spread(name, shape)
            if kind == "zero_padded":
                real = self._positions(axes, features=True)
                mask = self._mask(name, kind, real, axes.split()[1])
                x = x * mask.real[..., None]
            return x
        if kind == "weights":
            e = np.exp(self.noise(name, shape))
            return e / e.sum(-1, keepdims=True)
        if kind == "state_tuple":
            return tuple(self.noise(name, shape, s) * 0.7 for s in (0, 1))
        rng = np.random.default_rng(len(name) * 31 + self.seed)
        if kind.startswith("indices:"):
            return rng.integers(0, self.sizes[kind[8:]], shape)
        if kind == "token_ids":
            return rng.integers(1, self.sizes["vocab"], shape)
        if kind == "lengths":
            return self._lengths(name, shape)
        if kind == "additive":
            return self._additive(name, axes, shape)
        token = axes.rsplit(maxsplit=1)[-1]
        real = self._mask(name, kind, self._positions(axes), token).real
        keep = np.broadcast_to(
            real.reshape(real.shape[0], *([1] * (len(shape) - 2)), real.shape[-1])
            if len(shape) > 1
            else real[0],
            shape,
        ).copy()
        if kind == "token_ids_pad0":
            return rng.integers(1, self.sizes["vocab"], shape) * keep
        if kind == "token_lists":
            return [
                [int(t) for t in rng.integers(1, self.sizes["vocab"], int(row.sum()))]
                for row in keep
            ]
        forms: Mapping[str, Any] = {
            "keep": keep,
            "drop": ~keep,
            "keep_int": keep.astype(np.int64),
            "drop_int": (~keep).astype(np.int64),
            "keep_uint8": keep.astype(np.uint8),
            "keep_float01": keep.astype(np.float64),
            "drop_float01": (~keep).astype(np.float64),
        }
        return forms[kind]

    def _spread(self, name: str, shape: tuple[int, ...]) -> float:
        if self.is_parameter(name):
            return float(1.3 / max(shape) ** 0.5)
        # Products of unscaled features grow with their number.
        return 0.6 if self.contract.score in ("dot", "general") else 1.0

    def _positions(self, axes: str, *, features: bool = False) -> np.ndarray:
        """Real positions of every example; the last axis may be one of features."""
        shape = self.sizes.shape(axes)
        tokens = axes.split()
        n = shape[1 if features else -1]
        batch = shape[0] if len(tokens) > 1 else 1
        keep = np.zeros((batch, n), dtype=bool)
        for b in range(batch):
            k = n if self.full else max(1, n - _PAD[b % len(_PAD)])
            if self.contract.padding == "left":
                keep[b, n - k :] = True
            else:
                keep[b, :k] = True
        return keep

    def _mask(self, name: str, kind: str, real: np.ndarray, token: str) -> Mask:
        mask = Mask(name, kind, token, real)
        self.masks[name] = mask
        return mask

    def _lengths(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        every = self.contract.every_axis
        token = next((a for a in ("T_enc", "T", "T_dec") if a in every), "T_enc")
        n = self.sizes[token]
        gaps = (2, 0, 3, 1)
        counts = [n if self.full else max(1, n - gaps[b % 4]) for b in range(shape[0])]
        real = np.arange(n)[None] < np.asarray(counts)[:, None]
        self._mask(name, "lengths", real, token)
        return np.asarray(counts, dtype=np.int64)

    def _additive(self, name: str, axes: str, shape: tuple[int, ...]) -> np.ndarray:
        tokens = axes.split()
        n = shape[-1]
        if shape[0] == 1 or (len(tokens) > 1 and tokens[0] in _SEQUENCES):
            rows = shape[-2] if len(shape) > 1 else 1
            if self.contract.causal and rows > 1:
                offset = 1 if self.contract.causal == "top_left" else n - rows + 1
                ahead = np.triu(np.ones((rows, n), dtype=bool), offset)
            else:
                # Without a pattern of its own a shared bias forbids the later keys.
                ahead = np.triu(np.ones((rows, n), dtype=bool), 1)
            return np.broadcast_to(np.where(ahead, -1e9, 0.0), shape).copy()
        real = self._positions(axes)
        self._mask(name, "additive", real, tokens[-1])
        spread = real.reshape(real.shape[0], *([1] * (len(shape) - 2)), n)
        return np.broadcast_to(np.where(spread, 0.0, -1e9), shape).copy()
