"""What a subject is asked with: arrays whose axes cannot be mistaken for one another."""

from dataclasses import dataclass, replace

import numpy as np

from regard.testing.subject import Subject

__all__ = ["Inputs", "Sizes", "inputs_for", "mask_for", "padding_for", "sizes_for"]

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23)


@dataclass(frozen=True)
class Sizes:
    """Distinct primes, none of them a size of the subject's own."""

    batch: int
    T_dec: int
    T_enc: int


@dataclass(frozen=True, eq=False)
class Inputs:
    """Arguments in one layout for all subjects: NumPy, batch first, True = may attend.

    With self-attention query, key and value are one array.
    """

    query: np.ndarray
    """(batch, T_dec, d_s)"""

    key: np.ndarray
    """(batch, T_enc, d_h)"""

    value: np.ndarray
    """(batch, T_enc, d_v); the key where the subject takes no value."""

    mask: np.ndarray | None = None
    """(batch, T_dec, T_enc), bool"""

    @property
    def T_dec(self) -> int:  # noqa: N802 - the axis' name
        """Number of queries."""
        return int(self.query.shape[1])

    @property
    def T_enc(self) -> int:  # noqa: N802 - the axis' name
        """Number of keys."""
        return int(self.key.shape[1])

    def with_mask(self, mask: np.ndarray | None) -> "Inputs":
        """Return the same arrays under another mask."""
        return replace(self, mask=mask)

    def scaled(self, factor: float) -> "Inputs":
        """Return the same with all states multiplied."""
        return Inputs(self.query * factor, self.key * factor, self.value * factor, self.mask)

    def example(self, index: int, length: int, *, whole: bool) -> "Inputs":
        """Return one example with its first `length` keys, and no mask; `whole` keeps T_dec."""
        one, real = slice(index, index + 1), slice(length)
        return Inputs(
            self.query[one] if whole else self.query[one, real],
            self.key[one, real],
            self.value[one, real],
        )

    def reordered(self, order: np.ndarray, *, queries: bool) -> "Inputs":
        """Return keys and values in another order, and with `queries` those too."""
        query = self.query[:, order] if queries else self.query
        mask = self.mask
        if mask is not None:
            mask = mask[:, :, order]
            mask = mask[:, order] if queries else mask
        return Inputs(query, self.key[:, order], self.value[:, order], mask)

    def filled(self, where: np.ndarray, number: float, *, queries: bool) -> "Inputs":
        """Return the same with `number` in keys and values at `where` (batch, T_enc)."""
        key, value = self.key.copy(), self.value.copy()
        key[where], value[where] = number, number
        return Inputs(key.copy() if queries else self.query, key, value, self.mask)


def sizes_for(subject: Subject) -> Sizes:
    """Return how many examples, queries and keys to ask with."""
    taken = {subject.d_s, subject.d_h, subject.d_v, subject.heads}
    free = [prime for prime in _PRIMES if prime not in taken]
    batch, T_dec, T_enc = free[0], free[1], next(prime for prime in free[2:] if prime > 6)
    return Sizes(batch, T_enc if subject.self_attention else T_dec, T_enc)


def inputs_for(
    subject: Subject, rng: np.random.Generator, sizes: Sizes | None = None
) -> Inputs:
    """Draw states of unit variance, unmasked."""
    sizes = sizes or sizes_for(subject)
    key = rng.normal(size=(sizes.batch, sizes.T_enc, subject.d_h))
    if subject.self_attention:
        return Inputs(key, key, key)
    query = rng.normal(size=(sizes.batch, sizes.T_dec, subject.d_s))
    if subject.d_v is None:
        return Inputs(query, key, key)
    return Inputs(query, key, rng.normal(size=(sizes.batch, sizes.T_enc, subject.d_v)))


def mask_for(subject: Subject, rng: np.random.Generator, inputs: Inputs) -> np.ndarray:
    """Draw a mask ``(batch, T_dec, T_enc)`` of a kind that the subject can be given.

    Every query may attend to its first key and no one to the last; the rest is drawn, by pair
    where the subject has such masks.
    """
    batch, T_dec, T_enc = len(inputs.query), inputs.T_dec, inputs.T_enc
    if subject.mask == "lengths":
        lengths = rng.integers(1, T_enc, size=batch)
        return _rows(np.arange(T_enc) < lengths[:, None], T_dec)
    mask = _rows(rng.random((batch, T_enc)) < 0.6, T_dec)
    if subject.mask_axes == "T_dec T_enc":
        mask = rng.random((batch, T_dec, T_enc)) < 0.6
    mask[..., 0], mask[..., -1] = True, False
    return mask


def padding_for(lengths: np.ndarray, inputs: Inputs) -> np.ndarray:
    """Return the mask (batch, T_dec, T_enc) of examples with so many real keys."""
    return _rows(np.arange(inputs.T_enc) < lengths[:, None], inputs.T_dec)


def _rows(keys: np.ndarray, T_dec: int) -> np.ndarray:
    batch, T_enc = keys.shape
    return np.broadcast_to(keys[:, None], (batch, T_dec, T_enc)).copy()
