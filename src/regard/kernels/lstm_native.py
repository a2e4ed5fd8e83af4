"""The teacher-forced Bahdanau decoder with an LSTM, on the native library's steps.

As with a GRU (:mod:`regard.kernels.gru_native`) the whole loop is one node of the autograd
graph. A forward step is one product for query and state, one native call for scores, softmax
and context, one product for the context, and the gates in place. Backward, the slopes of all
gates are computed before the loop; inside it stay the query's gradient and two products, and
the gradients of keys, v and all weights come after it, for all steps together.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor

from regard.kernels import native
from regard.kernels.gru_recorded import LoopOutputs, recorded_gradients
from regard.kernels.lstm_recorded import LstmInputs, recorded_loop
from regard.kernels.prepared import PreparedKeys
from regard.kernels.step_major import addresses, gradients_of_scores, step_major
from regard.kernels.threads import threads_for

__all__ = ["native_loop"]


def native_loop(inputs: LstmInputs, key_mask: Tensor | None, keys: PreparedKeys) -> LoopOutputs:
    """Run the decoder over a whole sequence of known inputs, float32 on the CPU.

    Parameters
    ----------
    inputs : LstmInputs
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


class _NativeLoop(torch.autograd.Function):
    """Arrays are step-major inside, so that a step's part is contiguous.

    Q holds W_a s_{t-1} and the state's part of the gates side by side: one product gives both.
    E holds the queries' factors, K which arithmetic each example took, G the gates i, f, g, o
    behind their sigmoid or tanh, M the cells, and H tanh of the cells.
    """

    @staticmethod
    def forward(
        ctx: Any, key_mask: Tensor | None, keys: PreparedKeys, *given: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        _, value, gates, state, W_a, v_a, W_hh, W_c = given
        batch, T_enc, d_h = value.shape
        T_dec = gates.shape[1]
        d_attn, d_s = W_a.shape
        make = value.new_empty
        value, v_a = value.contiguous(), v_a.contiguous()
        # The layout in which a small product is fastest.
        W_q, W_ct = torch.cat([W_a.t(), W_hh.t()], 1), W_c.t().contiguous()

        S, M = make(T_dec + 1, batch, d_s), make(T_dec + 1, batch, d_s)
        S[0], M[0] = state.chunk(2, -1)
        C, A = make(T_dec, batch, d_h), make(T_dec, batch, T_enc)
        Q = make(T_dec, batch, d_attn + 4 * d_s)
        E = make(T_dec, batch, keys.native.padded)
        K = make(T_dec, batch, dtype=torch.uint8)
        G, H = make(T_dec, batch, 4 * d_s), make(T_dec, batch, d_s)
        asked = keys.native.with_values(v_a.data_ptr(), value.data_ptr(), d_h)
        step, threads = ctypes.addressof(asked), threads_for(keys.native.work)
        stride = Q.stride(1)
        steps = zip(
            *(each.unbind(0) for each in (S[:-1], S[1:], M[:-1], M[1:], Q, C, G, H)),
            Q[..., d_attn:].unbind(0),
            gates.unbind(1),
            G[..., : 2 * d_s].unbind(0),
            *(part.unbind(0) for part in G.chunk(4, -1)),
            *map(addresses, (Q, C, A, E, K)),
            strict=True,
        )
        for before, s, m_before, m, q, c, g, h, q_gates, x, i_f, i, f, n, o, *at in steps:
            at_q, at_c, at_a, at_e, at_k = at
            torch.mm(before, W_q, out=q)
            native.call(
                "regard_step_forward",
                None,
                *(step, at_q, stride, at_e, at_k, None, at_a, at_c, threads),
            )
            torch.addmm(x, c, W_ct, out=g)
            g.add_(q_gates)
            i_f.sigmoid_()
            n.tanh_()
            o.sigmoid_()
            torch.mul(f, m_before, out=m).addcmul_(i, n)
            torch.tanh(m, out=h)
            torch.mul(o, h, out=s)

        ctx.save_for_backward(*given, key_mask, S, M, C, A, Q, E, K, G, H)
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
    *given, key_mask, S, M, C, A, Q, E, K, G, H = ctx.saved_tensors
    if torch.is_grad_enabled():

        def recorded(inputs: list[Tensor]) -> LoopOutputs:
            return recorded_loop(LstmInputs(*inputs), key_mask, ctx.keys)

        grads = (d_states, d_contexts, d_weights)
        return (None, None, *recorded_gradients(recorded, given, grads))
    keys: PreparedKeys = ctx.keys
    _, value, _, _, W_a, v_a, W_hh, W_c = given
    T_dec, batch, T_enc = A.shape
    d_attn, d_s = W_a.shape
    make = value.new_empty
    value, v_a = value.contiguous(), v_a.contiguous()
    W_q = torch.cat([W_a, W_hh])

    dC = make(C.shape) if d_contexts is None else step_major(d_contexts)
    dQ, dA = make(Q.shape), make(A.shape)
    dG = dQ[..., d_attn:]
    by_cell = _write_slopes(M, G, H, dG.unflatten(-1, (4, d_s)))
    # Whatever strides they come with, rows of the last axis are read as they lie.
    given_a = None if d_weights is None else d_weights.contiguous()
    d_state, d_cell = value.new_zeros(batch, d_s), value.new_zeros(batch, d_s)
    d_row = d_cell.unsqueeze(1)
    asked = keys.native.with_values(v_a.data_ptr(), value.data_ptr(), value.shape[2])
    step, threads = ctypes.addressof(asked), threads_for(keys.native.work)
    stride = Q.stride(1)
    from_above = [None] * T_dec if given_a is None else addresses(given_a.transpose(0, 1))
    given_s = [None] * T_dec if d_states is None else d_states.unbind(1)
    parts = (
        *(each.unbind(0) for each in (dQ, dG, dC, by_cell)),
        dG[..., : 3 * d_s].unflatten(-1, (3, d_s)).unbind(0),
        dG[..., 3 * d_s :].unbind(0),
        G[..., d_s : 2 * d_s].unbind(0),
    )
    at = [addresses(each) for each in (E, K, A, dQ, dC, dA)]
    every = list(zip(*parts, given_s, *at, from_above, strict=True))
    for dq, dg, dc, slope, d_ifn, d_o, f, by_s, *now in reversed(every):
        at_e, at_k, at_a, at_dq, at_dc, at_da, by_a = now
        if by_s is not None:
            d_state.add_(by_s)
        d_cell.addcmul_(d_state, slope)
        d_ifn.mul_(d_row)
        d_o.mul_(d_state)
        d_cell.mul_(f)
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
        torch.mm(dq, W_q, out=d_state)

    flat_q = dQ.view(-1, stride)
    d_W_q = flat_q.t() @ S[:-1].reshape(-1, d_s)
    d_key, d_v = gradients_of_scores(keys, key_mask, v_a, Q[..., :d_attn], dA)
    return (
        None,
        None,
        d_key,
        torch.bmm(A.permute(1, 2, 0), dC.transpose(0, 1)),
        dG.transpose(0, 1),
        torch.cat([d_state, d_cell], -1),
        d_W_q[:d_attn],
        d_v,
        d_W_q[d_attn:],
        flat_q[:, d_attn:].t() @ C.view(-1, C.shape[2]),
    )


def _write_slopes(M: Tensor, G: Tensor, H: Tensor, slopes: Tensor) -> Tensor:
    """Write d m_t / d gates i, f, g and d s_t / d gate o to (T_dec, batch, 4, d_s).

    Returns d s_t / d m_t (T_dec, batch, d_s). The loop turns the slopes into gradients where
    they lie.
    """
    i, f, n, o = G.chunk(4, -1)
    by_i, by_f, by_n, by_o = slopes.unbind(2)
    for gate, factor, out in ((i, n, by_i), (f, M[:-1], by_f), (o, H, by_o)):
        # factor * gate * (1 - gate)
        torch.addcmul(gate, gate, gate, value=-1, out=out).mul_(factor)
    torch.mul(n, n, out=by_n).neg_().add_(1).mul_(i)
    return torch.mul(H, H).neg_().add_(1).mul_(o)
