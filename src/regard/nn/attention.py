"""From queries and keys to context: what all single-head modules share.

A module says how keys are projected and how queries are scored against them; masks, memories
and the contract about padding are the same for all and live here.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.attend import Attended
from regard.attention.normalizers import Normalizer
from regard.errors import ConventionError, explain
from regard.kernels.additive import additive_scores
from regard.kernels.attention import additive_attention
from regard.kernels.prepared import PreparedKeys
from regard.kernels.steps import native_step, step_applies
from regard.nn.memory import Memory, clear, key_mask_of, require_own
from regard.nn.normalize import normalize, require_normalizer
from regard.nn.shapes import fit, positive

__all__ = ["Attention"]


class Attention(nn.Module):
    """From queries and keys to context; a subclass says how keys are projected and scored."""

    def __init__(self, d_s: int, d_h: int, *, normalizer: str | Normalizer = "softmax") -> None:
        super().__init__()
        positive(type(self).__name__, d_s=d_s, d_h=d_h)
        self.d_s = d_s
        self.d_h = d_h
        self.normalizer = require_normalizer(normalizer)

    def prepare(
        self,
        key: Tensor,
        value: Tensor | None = None,
        key_lengths: Tensor | None = None,
        *,
        key_mask: Tensor | None = None,
    ) -> Memory:
        """Project the keys once, for any number of later calls.

        Parameters
        ----------
        key : (*batch, T_enc, d_h)
            Encoder states.
        value : (*batch, T_enc, d_v), optional
            What is averaged; the keys themselves if left out.
        key_lengths : (*batch,), integers, optional
            Number of real keys of each example, 0 to T_enc.
        key_mask : (*batch, T_enc), bool, optional
            True = may be attended; holds together with `key_lengths`.

        Returns
        -------
        memory : Memory
            To be passed to this module in place of `key`.

        Raises
        ------
        ShapeError, MaskError, BackendError
            An argument does not fit the module or the others.
        """
        call = f"{type(self).__name__}.prepare"
        fit(
            call,
            {"d_h": self.d_h},
            self._dtype(),
            key=(key, "float *batch T_enc d_h"),
            value=(value, "float *batch T_enc d_v | None"),
        )
        may = key_mask_of(call, key, key_lengths, key_mask)
        return self._remember(key, value, may, may)

    def forward(
        self,
        query: Tensor,
        key: Tensor | Memory,
        value: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        key_lengths: Tensor | None = None,
        need_weights: bool = True,
    ) -> Attended:
        """Let every query read the values, weighted by how well the keys answer it.

        Parameters
        ----------
        query : (*batch, T_dec, d_s)
            Decoder states; one step is T_dec = 1.
        key : (*batch, T_enc, d_h), or Memory
            Encoder states, or what :meth:`prepare` made of them.
        value : (*batch, T_enc, d_v), optional
            What is averaged; the keys themselves if left out.
        mask : (*batch, T_dec, T_enc), bool, optional
            True where the query may attend; holds together with `key_lengths`. It cannot undo
            what a memory has projected already: NaN in a key it forbids would still make the
            projection's gradient NaN. Padding is to be named at :meth:`prepare`.
        key_lengths : (*batch,), integers, optional
            Number of real keys of each example, 0 to T_enc.
        need_weights : bool
            Whether to return the weights. The context is the same, bit for bit, either way.

        Returns
        -------
        attended : Attended
            ``(context, weights)``: context (*batch, T_dec, d_v), zero for a query that may
            attend nowhere; weights (*batch, T_dec, T_enc) or None.

        Raises
        ------
        ShapeError, MaskError, BackendError
            An argument does not fit the module or the others; raised before any arithmetic.
        ConventionError
            A memory of another module, or a memory together with `value` or `key_lengths`.
        """
        call = type(self).__name__
        if isinstance(key, Memory):
            require_own(call, key, self)
            _refuse_beside_memory(call, value=value, key_lengths=key_lengths)
        fit(
            call,
            {"d_s": self.d_s, "d_h": self.d_h},
            self._dtype(),
            key=(key.key if isinstance(key, Memory) else key, "float *batch T_enc d_h"),
            query=(query, "float *batch T_dec d_s"),
            value=(value, "float *batch T_enc d_v | None"),
            mask=(mask, "bool *batch T_dec T_enc | None"),
        )
        reached = None if mask is None else mask.any(-2)
        if isinstance(key, Memory):
            memory = key
            if reached is not None:
                memory = _narrowed(memory, reached)
        else:
            may_be = key_mask_of(call, key, key_lengths)
            used = may_be if reached is None or may_be is None else may_be & reached
            memory = self._remember(key, value, may_be, reached if used is None else used)
        may = memory.key_mask if memory.key_mask is None else memory.key_mask.unsqueeze(-2)
        if mask is not None:
            may = mask if may is None else mask & may
        if may is not None:
            query = clear(query, may.any(-1).expand(query.shape[:-1]))
        if self.normalizer == "softmax" and self._additive() is not None:
            return Attended(
                *self._attend_additively(
                    query, memory, None if mask is None else may, need_weights=need_weights
                )
            )
        weights = normalize(self.normalizer, self._scores(query, memory), may)
        # Under autocast the two can differ in type here, and only here.
        context = torch.matmul(weights.to(memory.value.dtype), memory.value)
        return Attended(context, weights if need_weights else None)

    def _remember(
        self, key: Tensor, value: Tensor | None, key_mask: Tensor | None, used: Tensor | None
    ) -> Memory:
        if used is not None:
            key = clear(key, used)
            value = None if value is None else clear(value, used)
        projected = self._project(key)
        return Memory(
            key=key,
            value=key if value is None else value,
            key_mask=key_mask,
            projected=projected,
            owner=self,
            prepared=None if self._additive() is None else PreparedKeys(projected, key_mask),
        )

    def _attend_additively(
        self, query: Tensor, memory: Memory, mask: Tensor | None, *, need_weights: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Return context and weights; `mask` where there is more than the memory's own."""
        additive = self._additive()
        assert additive is not None  # it was asked
        W, v = additive
        key, value, keys = memory.projected, memory.value, memory.prepared
        if mask is None and keys is not None and step_applies(query, keys, value, W, v):
            context, weights = native_step(functional.linear(query, W), keys, v, value)
            return context, weights if need_weights else None
        return additive_attention(
            functional.linear(query, W).to(key.dtype),
            key,
            v.to(key.dtype),
            value,
            keys=keys,
            key_mask=memory.key_mask,
            mask=mask,
            need_weights=need_weights,
        )

    def _dtype(self) -> torch.dtype | None:
        return next((each.dtype for each in self.parameters()), None)

    def _project(self, key: Tensor) -> Tensor:
        raise NotImplementedError

    def _additive(self) -> tuple[Tensor, Tensor] | None:
        """Return the queries' matrix (d_attn, d_s) and v (d_attn,) of an additive score.

        None for any other score, which then brings its own ``_scores``.
        """
        return None

    def _scores(self, query: Tensor, memory: Memory) -> Tensor:
        additive = self._additive()
        if additive is None:
            raise NotImplementedError
        W, v = additive
        key = memory.projected
        from_query = functional.linear(query, W).to(key.dtype)
        return additive_scores(
            from_query, key, v.to(key.dtype), keys=memory.prepared, key_mask=memory.key_mask
        )


def _narrowed(memory: Memory, reached: Tensor) -> Memory:
    """Return the memory without what a mask lets no query reach."""
    return Memory(
        key=memory.key,
        value=clear(memory.value, reached),
        key_mask=memory.key_mask,
        projected=clear(memory.projected, reached),
        owner=memory.owner,
        prepared=None,  # of other keys, and with another mask
    )


def _refuse_beside_memory(call: str, **given: Tensor | None) -> None:
    for name, value in given.items():
        if value is not None:
            raise ConventionError(
                explain(
                    f"{call}(): `{name}` beside a memory",
                    expected=f"`{name}` given to prepare(), once",
                    got=f"`{name}` given to the call as well",
                    because="a memory already holds its values and lengths",
                )
            )
