"""Projected keys of one batch, made ready for the many queries that will ask them.

An additive score compares every query with the same projected keys. What can be computed of the
keys alone is computed once, when it is first needed, and only what the chosen path reads::

    keys = prepare(key, key_mask)
    for query in queries:  # (batch, 1, d_attn) each
        context, weights = attend(query, keys, v, value)  # regard.kernels.steps
"""

from math import prod
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor

from regard.axes import checked
from regard.kernels import pairs
from regard.kernels.native_step import NativeKeys

__all__ = ["PreparedKeys", "prepare"]


class PreparedKeys:
    """Projected keys, and what each path makes of them when it is first asked for it.

    Attributes
    ----------
    key : (*batch, T_enc, d_attn)
        The keys themselves, without gradient.
    key_mask : (*batch, T_enc), bool, or None
        True = may be attended.
    """

    def __init__(
        self,
        key: Tensor,
        key_mask: Tensor | None = None,
        *,
        factored: pairs.PreparedKeys | None = None,
        native: NativeKeys | None = None,
    ) -> None:
        self.key = key.detach()
        self.key_mask = key_mask
        self._factored = factored
        self._native = native

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={tuple(self.key.shape)}, dtype={self.key.dtype})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Addresses mean nothing elsewhere: a copy, or another process, makes its own again.
        return type(self), (self.key, self.key_mask)

    @property
    def factored(self) -> pairs.PreparedKeys:
        """What PyTorch's operations in blocks read; float32 and float64."""
        if self._factored is None:
            self._factored = pairs.prepare_keys(self.key)
        return self._factored

    @property
    def native(self) -> NativeKeys:
        """What a step in the native library reads; float32 on the CPU, where it is there."""
        if self._native is None:
            self.key = self.key.contiguous()
            mask = None if self.key_mask is None else self.key_mask.contiguous()
            *batch, T_enc, d_attn = self.key.shape
            self._native = NativeKeys.of(
                self.key.data_ptr(),
                None if mask is None else mask.data_ptr(),
                (prod(batch), T_enc, d_attn),
            )
        return self._native

    def select(self, indices: Tensor) -> "PreparedKeys":
        """Return the keys of these examples, in this order, repeats allowed.

        Parameters
        ----------
        indices : (n,), integers
            Along the first batch axis; a beam search repeats or drops hypotheses so.
        """
        key = self.key[indices].contiguous()
        native = None
        if self._native is not None and self.key.ndim == 3:
            native = self._native.select(key.data_ptr(), indices.numpy())
        return PreparedKeys(
            key,
            None if self.key_mask is None else self.key_mask[indices],
            factored=None if self._factored is None else self._factored.select(indices),
            native=native,
        )


@checked
def prepare(
    key: Float[Tensor, "*batch T_enc d_attn"],
    key_mask: Bool[Tensor, "*batch T_enc"] | None = None,
) -> PreparedKeys:
    """Make projected keys ready for any number of queries; nothing is computed yet.

    Parameters
    ----------
    key : (*batch, T_enc, d_attn)
        Already projected. No gradient flows through the result; not to be written to as long as
        it is used.
    key_mask : (*batch, T_enc), bool, optional
        True = may be attended.

    Returns
    -------
    keys : PreparedKeys
        For :func:`regard.kernels.steps.attend` and
        :func:`regard.kernels.additive.additive_scores`.

    Raises
    ------
    ShapeError, MaskError, BackendError
        The mask does not fit the keys, or one of them is no such tensor.

    Examples
    --------
    >>> import torch
    >>> prepare(torch.ones(2, 5, 7), torch.ones(2, 5, dtype=torch.bool))
    PreparedKeys(shape=(2, 5, 7), dtype=torch.float32)
    """
    return PreparedKeys(key, key_mask)
