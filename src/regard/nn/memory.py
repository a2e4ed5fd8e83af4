"""What a decoder remembers of one batch of source sequences.

Projected keys are the same at every decoder step. They are computed once, by ``prepare``, and
travel in a :class:`Memory` that is passed back explicitly: a module itself keeps nothing, so no
call can see what an earlier one left behind.
"""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from regard.attention.masks import from_lengths
from regard.errors import ConventionError, explain
from regard.kernels.prepared import PreparedKeys
from regard.nn.shapes import fit, recorded

__all__ = ["Memory", "clear", "key_mask_of", "require_own"]


@dataclass(frozen=True, eq=False)
class Memory:
    """Keys, values and their mask, ready to be attended by the module that made it."""

    key: Tensor
    """(*batch, T_enc, d_h): padding cleared to 0."""

    value: Tensor
    """(*batch, T_enc, d_v): padding cleared to 0; the keys themselves in the classical case."""

    key_mask: Tensor | None
    """(*batch, T_enc), bool, True = may be attended; None where everything may."""

    projected: Tensor
    """What a query is compared with: (*batch, T_enc, d_attn), (…, d_s), or the keys."""

    owner: nn.Module = field(repr=False)
    """The module whose parameters projected the keys; no other accepts this memory."""

    prepared: PreparedKeys | None = field(default=None, repr=False)
    """The projected keys once more, made ready for additive kernels when these first ask."""

    def select(self, indices: Tensor) -> "Memory":
        """Return the memory of these examples, in this order, repeats allowed.

        Parameters
        ----------
        indices : (n,), integers
            Along the first batch axis; a beam search repeats or drops hypotheses so.
        """
        key = self.key[indices]
        projected = key if self.projected is self.key else self.projected[indices]
        return replace(
            self,
            key=key,
            value=key if self.value is self.key else self.value[indices],
            key_mask=None if self.key_mask is None else self.key_mask[indices],
            projected=projected,
            prepared=None if self.prepared is None else self.prepared.select(indices),
        )


def key_mask_of(
    call: str,
    key: Tensor,
    key_lengths: Tensor | None,
    key_mask: Tensor | None = None,
    *,
    name: str = "key",
) -> Tensor | None:
    """Return the one mask (*batch, T_enc) that lengths and mask make, or None without both.

    `name` is what the caller calls the keys, for error texts.

    Raises
    ------
    ShapeError, MaskError, BackendError
        One of them does not fit the keys, or a length lies outside 0 .. T_enc.
    """
    fit(
        call,
        {},
        None,
        **{name: (key, "float *batch T_enc d_h")},
        key_lengths=(key_lengths, "int *batch | None"),
        key_mask=(key_mask, "bool *batch T_enc | None"),
    )
    if key_lengths is None:
        return key_mask
    T_enc = key.shape[-2]
    if recorded():
        real = torch.arange(T_enc, device=key.device) < key_lengths.unsqueeze(-1)
    else:
        real = from_lengths(key_lengths, T_dec=1, T_enc=T_enc).squeeze(-2)
    return real if key_mask is None else real & key_mask


def clear(states: Tensor, used: Tensor) -> Tensor:
    """Set the states (*batch, T, d) that are not used (*batch, T) to zero, NaN included.

    A weight of zero is not enough: 0 * NaN is NaN, in the context and in every gradient.
    """
    return states.masked_fill(~used.unsqueeze(-1), 0.0)


def require_own(call: str, memory: object, owner: nn.Module) -> None:
    """Refuse anything but a memory that `owner` prepared.

    Raises
    ------
    ConventionError
        It is no memory, or another module's.
    """
    if isinstance(memory, Memory) and memory.owner is owner:
        return
    expected = "what this module's own prepare(...) returned"
    if isinstance(memory, Memory):
        raise ConventionError(
            explain(
                f"{call}(): `memory` was prepared by another module",
                expected=expected,
                got=f"the memory of another {type(memory.owner).__name__}",
                because="the module that prepares keys projects them with its own parameters",
            )
        )
    raise ConventionError(
        explain(
            f"{call}(): `memory` is no Memory", expected=expected, got=type(memory).__name__
        )
    )
