r"""The whole teacher-forced Bahdanau decoder as one node of the autograd graph.

For t = 1 .. T_dec, with keys projected and input gates computed beforehand:

.. math::
   q_t &= W_a s_{t-1}, \quad a_t = \mathrm{softmax}(v_a^\top \tanh(q_t + k)), \quad
   c_t = a_t H \\
   s_t &= \mathrm{GRU}(g_t + W_c c_t,\; W_{hh} s_{t-1} + b_{hh})

Recorded operation by operation, each step makes some twenty nodes and keeps several arrays
(batch, T_enc, d_attn). Here the backward pass is written out: inside the loop it computes only
what the previous state's gradient needs; everything that belongs to weights waits and becomes a
few large matrix products at the end. The pairs of :mod:`regard.kernels.pairs` are recomputed.
"""

from typing import Any

import torch
from torch import Tensor

from regard.kernels import gru_native, torch_op
from regard.kernels.choose import additive_path
from regard.kernels.gru_recorded import (
    LoopInputs,
    LoopOutputs,
    gru_update,
    recorded_gradients,
    recorded_loop,
)
from regard.kernels.pairs import PreparedKeys as FactoredKeys
from regard.kernels.pairs import reciprocals
from regard.kernels.prepared import PreparedKeys
from regard.kernels.step_major import step_major
from regard.kernels.transforms import by_hand

__all__ = ["LoopInputs", "LoopOutputs", "bahdanau_loop", "gru_update"]


def bahdanau_loop(
    inputs: LoopInputs, key_mask: Tensor | None, *, keys: PreparedKeys | None = None
) -> LoopOutputs:
    """Run the decoder over a whole sequence of known inputs.

    Parameters
    ----------
    inputs : LoopInputs
    key_mask : (batch, T_enc), bool, or None
        True = may attend. Keys and values at False must be finite; an example without any
        permitted key has zero weights, contexts and gradients of its keys.
    keys : PreparedKeys, optional
        What :func:`~regard.kernels.prepared.prepare` made of ``inputs.key`` and `key_mask`.

    Returns
    -------
    outputs : LoopOutputs
        All three carry gradients.

    Notes
    -----
    float32 on the CPU runs in the native library where :mod:`regard.kernels.choose` says so
    (:mod:`regard.kernels.gru_native`); else float32 and float64 with gradients take the
    written-out backward pass below. Other types, and code under ``torch.compile`` or a
    transform of ``torch.func``, take the recorded loop. A second derivative works and is slow:
    it runs the recorded loop again.
    """
    if by_hand(inputs.value.dtype):
        if keys is None or keys.key.dtype != inputs.key.dtype:  # autocast's are in half
            keys = PreparedKeys(inputs.key, key_mask)
        work = inputs.gates.shape[1] * inputs.key.numel()
        native = additive_path(work, suits_native=torch_op.takes(*inputs)) == "native"
        if native and not torch.is_autocast_enabled("cpu"):
            return gru_native.native_loop(inputs, key_mask, keys)
        if torch.is_grad_enabled() and any(each.requires_grad for each in inputs):
            return LoopOutputs(*_apply(key_mask, keys, *inputs))
    return recorded_loop(inputs, key_mask, keys)


def _apply(*given: Any) -> tuple[Tensor, Tensor, Tensor]:
    return _Loop.apply(*given)  # type: ignore[no-any-return,no-untyped-call] # torch's gap


class _Loop(torch.autograd.Function):
    """Arrays are step-major inside, so that a step's part is contiguous.

    Q holds W_a s_{t-1} and the state's part of the gates side by side: one product gives both.
    """

    @staticmethod
    def forward(
        ctx: Any, key_mask: Tensor | None, prepared: PreparedKeys, *given: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        keys = prepared.factored
        _, value, gates, state, W_a, v_a, W_hh, b_hh, W_c = given
        batch, T_enc, d_h = value.shape
        T_dec = gates.shape[1]
        d_attn, d_s = W_a.shape
        make = value.new_empty
        value = value.contiguous()
        forbidden = None if key_mask is None else ~key_mask
        alive = _rows_alive(key_mask, value.dtype)
        lowest = torch.finfo(value.dtype).min

        # Doubling, centring and the bias ride along with the product.
        double = 2.0 if keys.factored else -2.0
        W_q = torch.cat([double * W_a, W_hh]).t()
        b_q = torch.cat([double * keys.centre[:, 0], b_hh.expand(batch, -1)], 1)
        minus_2v = -2 * v_a  # tanh = 1 - 2 r, and softmax does not see the constant

        S = make(T_dec + 1, batch, d_s)
        S[0] = state
        C, A = make(T_dec, batch, d_h), make(T_dec, batch, T_enc)
        Q = make(T_dec, batch, d_attn + 3 * d_s)
        RZ, N = make(T_dec, batch, 2 * d_s), make(T_dec, batch, d_s)
        pairs, scores = make(batch, T_enc, d_attn), make(batch, T_enc)
        both = make(batch, 3 * d_s)
        both_rz, both_n = torch.split(both, [2 * d_s, d_s], 1)
        flat_pairs, flat_scores = pairs.view(-1, d_attn), scores.view(-1)
        W_ct = W_c.t()

        steps = zip(
            gates.unbind(1),
            S[:-1].unbind(0),
            S[1:].unbind(0),
            Q.unbind(0),
            *(part.unbind(0) for part in torch.split(Q, [d_attn, 2 * d_s, d_s], 2)),
            C.unbind(0),
            C.unsqueeze(2).unbind(0),
            A.unbind(0),
            A.unsqueeze(2).unbind(0),
            RZ.unbind(0),
            *(part.unbind(0) for part in torch.split(RZ, d_s, 2)),
            N.unbind(0),
            strict=True,
        )
        for gate, before, after, q, e, q_rz, q_n, c, c_row, a, a_row, rz, r, z, n in steps:
            torch.addmm(b_q, before, W_q, out=q)
            if keys.factored:
                e.exp_()
            reciprocals(e.unsqueeze(1), keys.factor, factored=keys.factored, out=pairs)
            torch.mv(flat_pairs, minus_2v, out=flat_scores)
            if forbidden is not None:
                scores.masked_fill_(forbidden, lowest)
            torch.softmax(scores, -1, out=a)
            if alive is not None:
                a.mul_(alive)
            torch.bmm(a_row, value, out=c_row)
            torch.addmm(gate, c, W_ct, out=both)
            torch.add(both_rz, q_rz, out=rz).sigmoid_()
            torch.addcmul(both_n, r, q_n, out=n).tanh_()
            torch.lerp(n, before, z, out=after)

        ctx.save_for_backward(*given, key_mask, S, C, A, Q, RZ, N)
        ctx.keys = prepared
        ctx.set_materialize_grads(False)
        return S[1:].transpose(0, 1), C.transpose(0, 1), A.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        # A caller's autocast around backward() is not for the products in here.
        with torch.autocast(ctx.saved_tensors[1].device.type, enabled=False):
            return _differentiate(ctx, *grads)


def _differentiate(
    ctx: Any, d_states: Tensor | None, d_contexts: Tensor | None, d_weights: Tensor | None
) -> tuple[Tensor | None, ...]:
    *given, key_mask, S, C, A, Q, RZ, N = ctx.saved_tensors
    if torch.is_grad_enabled():

        def recorded(inputs: list[Tensor]) -> LoopOutputs:
            return recorded_loop(LoopInputs(*inputs), key_mask, ctx.keys)

        grads = (d_states, d_contexts, d_weights)
        return (None, None, *recorded_gradients(recorded, given, grads))
    keys: FactoredKeys = ctx.keys.factored
    _, value, _, _, W_a, v_a, W_hh, _, W_c = given
    batch, T_enc, d_h = value.shape
    d_attn, d_s = W_a.shape
    T_dec = N.shape[0]
    make = value.new_empty
    slope = 4 * v_a
    values_t = value.transpose(1, 2).contiguous()  # rows over T_enc: a fast product below
    W_q = torch.cat([W_a, W_hh])

    dC = make(T_dec, batch, d_h) if d_contexts is None else step_major(d_contexts)
    dG, dQ = make(T_dec, batch, 3, d_s), make(T_dec, batch, d_attn + 3 * d_s)
    dQ_gates = dQ[..., d_attn:].unflatten(-1, (3, d_s))
    _write_local_slopes(S, Q[..., d_attn + 2 * d_s :], RZ, N, dG=dG, dQ=dQ_gates)
    G = make(T_dec, batch, T_enc)
    pairs, spread = make(batch, T_enc, d_attn), value.new_zeros(batch, T_enc, d_attn)
    flat_pairs_t = pairs.view(-1, d_attn).t()
    d_v, d_state = torch.zeros_like(v_a), value.new_zeros(batch, d_s)
    given_s = None if d_states is None else d_states.unbind(1)
    given_a = None if d_weights is None else d_weights.unbind(1)
    views = [
        dC.unbind(0),
        dG.unbind(0),
        dG.flatten(2).unbind(0),
        dQ.unbind(0),
        dQ_gates.unbind(0),
        dQ[..., :d_attn].unbind(0),
        G.unbind(0),
        A.unbind(0),
        Q[..., :d_attn].unsqueeze(2).unbind(0),
        RZ[..., d_s:].unbind(0),
    ]
    for t in reversed(range(T_dec)):
        dc, dg, dg_flat, dq, dq_gates, dq_a, g, a, e, z = (view[t] for view in views)
        if given_s is not None:
            d_state.add_(given_s[t])
        d_row = d_state.unsqueeze(1)
        dg.mul_(d_row)
        dq_gates.mul_(d_row)
        if d_contexts is None:
            torch.mm(dg_flat, W_c, out=dc)
        else:
            dc.addmm_(dg_flat, W_c)
        d_a = torch.bmm(dc.unsqueeze(1), values_t).squeeze(1)
        if given_a is not None:
            d_a += given_a[t]
        d_a.mul_(a)
        torch.addcmul(d_a, a, d_a.sum(-1, keepdim=True), value=-1, out=g)
        reciprocals(e, keys.factor, factored=keys.factored, out=pairs)
        d_v.addmv_(flat_pairs_t, g.view(-1))
        pairs.addcmul_(pairs, pairs, value=-1)  # a quarter of the tangent's derivative
        spread.addcmul_(pairs, g.unsqueeze(-1))
        torch.mul(torch.bmm(g.unsqueeze(1), pairs).squeeze(1), slope, out=dq_a)
        d_state.mul_(z).addmm_(dq, W_q)

    flat_q, flat_g = dQ.view(-1, dQ.shape[-1]), dG.view(-1, 3 * d_s)
    d_W_q = flat_q.t() @ S[:-1].reshape(-1, d_s)
    return (
        None,
        None,
        spread.mul_(slope),
        torch.bmm(A.permute(1, 2, 0), dC.transpose(0, 1)),
        dG.flatten(2).transpose(0, 1),
        d_state,
        d_W_q[:d_attn],
        G.sum() - 2 * d_v,
        d_W_q[d_attn:],
        flat_q[:, d_attn:].sum(0),
        flat_g.t() @ C.reshape(-1, d_h),
    )


def _write_local_slopes(
    S: Tensor, from_state_n: Tensor, RZ: Tensor, N: Tensor, *, dG: Tensor, dQ: Tensor
) -> None:
    """Write d s_t / d gates of all steps, by their input half to `dG`, by the state's to `dQ`.

    Both are (T_dec, batch, 3, d_s); the loop turns slopes into gradients where they lie.
    """
    R, Z = RZ.chunk(2, -1)
    by_r, by_z, by_n = dG.unbind(2)
    rest = torch.neg(Z).add_(1)
    torch.mul(N, N, out=by_n)
    by_n.neg_().add_(1).mul_(rest)
    torch.sub(S[:-1], N, out=by_z)
    by_z.mul_(Z).mul_(rest)
    torch.neg(R, out=rest)
    rest.add_(1).mul_(R)
    torch.mul(by_n, from_state_n, out=by_r)
    by_r.mul_(rest)
    dQ[:, :, :2] = dG[:, :, :2]
    torch.mul(by_n, R, out=dQ[:, :, 2])


def _rows_alive(key_mask: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """Return (batch, 1) ones and zeros where some example has no key at all, else None."""
    if key_mask is None:
        return None
    alive = key_mask.any(-1, keepdim=True)
    return None if bool(alive.all()) else alive.to(dtype)
