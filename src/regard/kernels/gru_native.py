"""The teacher-forced Bahdanau decoder with the native library's steps.

As in :mod:`regard.kernels.gru_loop` the whole loop is one node of the autograd graph, and its
equations are the same. A forward step is one product for query and state, one native call for
scores, softmax and context, one product for the context, and one native call for the gates. A
backward step computes the query's gradient alone; the gradients of keys and v wait, and come
from one native call for all steps.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor

from regard.kernels import native
from regard.kernels.gru_recorded import (
    LoopInputs,
    LoopOutputs,
    recorded_gradients,
    recorded_loop,
)
from regard.kernels.prepared import PreparedKeys
from regard.kernels.step_major import addresses, gradients_of_scores, step_major
from regard.kernels.threads import threads_for

__all__ = ["Gru", "native_loop"]


def native_loop(inputs: LoopInputs, key_mask: Tensor | None, keys: PreparedKeys) -> LoopOutputs:
    """Run the decoder over a whole sequence of known inputs, float32 on the CPU.

    Parameters
    ----------
    inputs : LoopInputs
    key_mask : (batch, T_enc), bool, or None
        True = may attend.
    keys : PreparedKeys
        Made of ``inputs.key`` and `key_mask`.

    Returns
    -------
    outputs : LoopOutputs
        All three carry gradients.
    """
    return LoopOutputs(*_apply(key_mask, keys, *inputs))


def _apply(*given: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _NativeLoop.apply(*given)  # type: ignore[no-any-return,no-untyped-call] # torch's gap


class Gru(ctypes.Structure):
    """What all steps share, as csrc/interface.h lays it out."""

    _fields_ = (
        ("bias", ctypes.c_void_p),
        *((name, ctypes.c_int64) for name in ("batch", "d_s", "input_stride", "state_stride")),
    )


class _NativeLoop(torch.autograd.Function):
    """Arrays are step-major inside, so that a step's part is contiguous.

    Q holds W_a s_{t-1} and the state's part of the gates side by side: one product gives both.
    E holds the queries' factors, K which arithmetic each example took, G the gates r, z, n.
    """

    @staticmethod
    def forward(
        ctx: Any, key_mask: Tensor | None, keys: PreparedKeys, *given: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        _, value, gates, state, W_a, v_a, W_hh, b_hh, W_c = given
        batch, T_enc, d_h = value.shape
        T_dec = gates.shape[1]
        d_attn, d_s = W_a.shape
        make = value.new_empty
        value, v_a, gates, b_hh = (x.contiguous() for x in (value, v_a, gates, b_hh))
        # The layout in which a small product is fastest.
        W_q, W_ct = torch.cat([W_a.t(), W_hh.t()], 1), W_c.t().contiguous()

        S = make(T_dec + 1, batch, d_s)
        S[0] = state
        C, A = make(T_dec, batch, d_h), make(T_dec, batch, T_enc)
        Q = make(T_dec, batch, d_attn + 3 * d_s)
        E = make(T_dec, batch, keys.native.padded)
        K = make(T_dec, batch, dtype=torch.uint8)
        G, both = make(T_dec, batch, 3 * d_s), make(batch, 3 * d_s)
        asked = keys.native.with_values(v_a.data_ptr(), value.data_ptr(), d_h)
        step, threads = ctypes.addressof(asked), threads_for(keys.native.work)
        stride = Q.stride(1)
        shared = Gru(b_hh.data_ptr(), batch, d_s, gates.stride(0), stride)
        gru, from_context, from_state = ctypes.addressof(shared), both.data_ptr(), 4 * d_attn
        steps = zip(
            S[:-1].unbind(0),
            Q.unbind(0),
            C.unbind(0),
            *map(addresses, (gates.transpose(0, 1), S[:-1], S[1:], Q, C, A, E, K, G)),
            strict=True,
        )
        for before, q, c, at_x, at_s, at_after, at_q, at_c, at_a, at_e, at_k, at_g in steps:
            torch.mm(before, W_q, out=q)
            native.call(
                "regard_step_forward",
                None,
                *(step, at_q, stride, at_e, at_k, None, at_a, at_c, threads),
            )
            torch.mm(c, W_ct, out=both)
            native.call(
                "regard_gru_forward",
                None,
                *(gru, at_x, from_context, at_q + from_state, at_s, at_g, at_after),
            )

        ctx.save_for_backward(*given, key_mask, S, C, A, Q, E, K, G)
        ctx.keys = keys
        ctx.set_materialize_grads(False)
        return S[1:].transpose(0, 1), C.transpose(0, 1), A.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        # A caller's autocast around backward() is not for the products in here.
        with torch.autocast("cpu", enabled=False):
            return _differentiate(ctx, *grads)


def _differentiate(
    ctx: Any, d_states: Tensor | None, d_contexts: Tensor | None, d_weights: Tensor | None
) -> tuple[Tensor | None, ...]:
    *given, key_mask, S, C, A, Q, E, K, G = ctx.saved_tensors
    if torch.is_grad_enabled():

        def recorded(inputs: list[Tensor]) -> LoopOutputs:
            return recorded_loop(LoopInputs(*inputs), key_mask, ctx.keys)

        grads = (d_states, d_contexts, d_weights)
        return (None, None, *recorded_gradients(recorded, given, grads))
    keys: PreparedKeys = ctx.keys
    _, value, _, _, W_a, v_a, W_hh, b_hh, W_c = given
    T_dec, batch, T_enc = A.shape
    d_attn, d_s = W_a.shape
    make = value.new_empty
    value, v_a, b_hh = value.contiguous(), v_a.contiguous(), b_hh.contiguous()
    W_q = torch.cat([W_a, W_hh])

    dC = make(C.shape) if d_contexts is None else step_major(d_contexts)
    dG, dQ, dA = make(G.shape), make(Q.shape), make(A.shape)
    # Whatever strides they come with, rows of the last axis are read as they lie.
    given_s = None if d_states is None else d_states.contiguous()
    given_a = None if d_weights is None else d_weights.contiguous()
    d_state = value.new_zeros(batch, d_s)
    asked = keys.native.with_values(v_a.data_ptr(), value.data_ptr(), value.shape[2])
    step, threads = ctypes.addressof(asked), threads_for(keys.native.work)
    stride, from_state = Q.stride(1), 4 * d_attn
    shared = Gru(b_hh.data_ptr(), batch, d_s, 0, stride)
    gru, at_d_state = ctypes.addressof(shared), d_state.data_ptr()
    at = [addresses(each) for each in (S[:-1], Q, E, K, G, A, dG, dQ, dC, dA)]
    from_above = [
        [None] * T_dec if each is None else addresses(each.transpose(0, 1))
        for each in (given_s, given_a)
    ]
    parts = (dG.unbind(0), dQ.unbind(0), dC.unbind(0))
    for dg, dq, dc, *now in reversed(list(zip(*parts, *at, *from_above, strict=True))):
        at_s, at_q, at_e, at_k, at_g, at_a, at_dg, at_dq, at_dc, at_da, by_s, by_a = now
        native.call(
            "regard_gru_backward",
            None,
            *(gru, by_s, T_dec * d_s, at_g, at_q + from_state, at_s),
            *(at_dg, at_dq + from_state, at_d_state),
        )
        if d_contexts is None:
            torch.mm(dg, W_c, out=dc)
        else:
            dc.addmm_(dg, W_c)
        native.call(
            "regard_step_backward",
            None,
            *(step, at_e, at_k, at_a, at_dc, by_a, T_dec * T_enc),
            *(at_da, at_dq, stride, threads),
        )
        d_state.addmm_(dq, W_q)

    flat_q, flat_g = dQ.view(-1, stride), dG.view(-1, 3 * d_s)
    d_W_q = flat_q.t() @ S[:-1].reshape(-1, d_s)
    d_key, d_v = gradients_of_scores(keys, key_mask, v_a, Q[..., :d_attn], dA)
    return (
        None,
        None,
        d_key,
        torch.bmm(A.permute(1, 2, 0), dC.transpose(0, 1)),
        dG.transpose(0, 1),
        d_state,
        d_W_q[:d_attn],
        d_v,
        d_W_q[d_attn:],
        flat_q[:, d_attn:].sum(0),
        flat_g.t() @ C.view(-1, C.shape[2]),
    )
