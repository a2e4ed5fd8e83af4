"""A GRU over sequences that are all of one length, each direction one node of the graph.

Recorded by PyTorch, a step of a GRU on the CPU is some twenty small operations there and back.
Here a forward step is one product and one native call for the gates, as in
:mod:`regard.kernels.gru_native`; a backward step is the same, and the gradients of weights are
one product for all steps. Numbers are those of ``torch.nn.GRU``, up to rounding.
"""

import ctypes
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.kernels import native
from regard.kernels.choose import additive_path
from regard.kernels.gru_native import Gru
from regard.kernels.gru_recorded import gru_update, recorded_gradients
from regard.kernels.step_major import addresses
from regard.kernels.torch_op import takes
from regard.kernels.transforms import by_hand

__all__ = ["run_gru"]


def run_gru(rnn: nn.GRU, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Do what ``rnn(inputs)`` does, for training.

    Parameters
    ----------
    rnn : torch.nn.GRU
        With ``batch_first`` and biases.
    inputs : (batch, T, d_in)
        None of the sequences padded.

    Returns
    -------
    states : (batch, T, directions * d_hidden)
        Of the highest layer.
    last : (layers * directions, batch, d_hidden)

    Notes
    -----
    PyTorch's own runs where gradients are not asked for, for little work, for other types than
    float32 on the CPU, and where :mod:`regard.kernels.choose` or
    :mod:`regard.kernels.transforms` say so.
    """
    weights = list(rnn.parameters())
    work = inputs.shape[0] * inputs.shape[1] * 3 * rnn.hidden_size
    wanted = torch.is_grad_enabled() and any(each.requires_grad for each in weights)
    if not (
        wanted
        and by_hand(inputs.dtype)
        and not torch.is_autocast_enabled("cpu")
        and additive_path(work, suits_native=takes(inputs, *weights)) == "native"
    ):
        states, last = rnn(inputs)
        return states, last
    ends: list[Tensor] = []
    for layer in range(rnn.num_layers):
        if layer:
            inputs = functional.dropout(inputs, rnn.dropout, rnn.training)
        found = []
        for suffix in ("", "_reverse") if rnn.bidirectional else ("",):
            W_ih, W_hh, b_ih, b_hh = (
                getattr(rnn, f"{name}_l{layer}{suffix}")
                for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            gates = functional.linear(inputs, W_ih, b_ih)
            states = _apply(bool(suffix), gates, W_hh, b_hh)
            found.append(states)
            ends.append(states[:, 0 if suffix else -1])
        inputs = torch.cat(found, -1) if len(found) > 1 else found[0]
    return inputs, torch.stack(ends)


def _apply(*given: Any) -> Tensor:
    return _Direction.apply(*given)  # type: ignore[no-any-return,no-untyped-call] # torch's gap


class _Direction(torch.autograd.Function):
    """Arrays are step-major inside, so that a step's part is contiguous.

    S holds the states, with the zeros before the first step in front, or behind where the way
    goes backwards; Q the state's part of the gates, G the gates r, z, n.
    """

    @staticmethod
    def forward(ctx: Any, backwards: bool, gates: Tensor, W_hh: Tensor, b_hh: Tensor) -> Tensor:
        gates, b_hh, W_t = gates.contiguous(), b_hh.contiguous(), W_hh.t().contiguous()
        batch, T, width = gates.shape
        d = W_hh.shape[1]
        S = gates.new_empty(T + 1, batch, d)
        S[-1 if backwards else 0] = 0.0
        before, after = (S[1:], S[:-1]) if backwards else (S[:-1], S[1:])
        Q, G = gates.new_empty(T, batch, width), gates.new_empty(T, batch, width)
        no_context = gates.new_zeros(batch, width)
        shared = Gru(b_hh.data_ptr(), batch, d, gates.stride(0), width)
        gru, nothing = ctypes.addressof(shared), no_context.data_ptr()
        steps = zip(
            before.unbind(0),
            Q.unbind(0),
            *map(addresses, (gates.transpose(0, 1), before, after, Q, G)),
            strict=True,
        )
        for state, q, at_x, at_s, at_after, at_q, at_g in _in_order(steps, backwards):
            torch.mm(state, W_t, out=q)
            native.call(
                "regard_gru_forward", None, gru, at_x, nothing, at_q, at_s, at_g, at_after
            )
        ctx.save_for_backward(gates, W_hh, b_hh, S, Q, G)
        ctx.backwards = backwards
        return after.transpose(0, 1)

    @staticmethod
    def backward(ctx: Any, d_states: Tensor) -> tuple[Tensor | None, ...]:
        # A caller's autocast around backward() is not for the products in here.
        with torch.autocast("cpu", enabled=False):
            return (None, *_differentiate(ctx, d_states))


def _differentiate(ctx: Any, d_states: Tensor) -> tuple[Tensor | None, ...]:
    gates, W_hh, b_hh, S, Q, G = ctx.saved_tensors
    backwards: bool = ctx.backwards
    if torch.is_grad_enabled():

        def recorded(inputs: list[Tensor]) -> tuple[Tensor]:
            return (_recorded(backwards, *inputs),)

        return recorded_gradients(recorded, [gates, W_hh, b_hh], (d_states,))
    T, batch, width = Q.shape
    before = S[1:] if backwards else S[:-1]
    dG, dQ = torch.empty_like(G), torch.empty_like(Q)
    d_state = S.new_zeros(batch, S.shape[2])
    given = d_states.contiguous()
    shared = Gru(b_hh.data_ptr(), batch, S.shape[2], 0, width)
    gru, at_d_state, apart = ctypes.addressof(shared), d_state.data_ptr(), given.stride(0)
    at = map(addresses, (given.transpose(0, 1), G, Q, before, dG, dQ))
    steps = zip(dQ.unbind(0), *at, strict=True)
    for dq, by_s, at_g, at_q, at_s, at_dg, at_dq in _in_order(steps, not backwards):
        native.call(
            "regard_gru_backward",
            None,
            *(gru, by_s, apart, at_g, at_q, at_s, at_dg, at_dq, at_d_state),
        )
        d_state.addmm_(dq, W_hh)
    flat = dQ.view(-1, width)
    d_W_hh = flat.t() @ before.reshape(T * batch, -1)
    return dG.transpose(0, 1), d_W_hh, flat.sum(0)


def _in_order(steps: Any, turned: bool) -> Any:
    return reversed(list(steps)) if turned else steps


def _recorded(backwards: bool, gates: Tensor, W_hh: Tensor, b_hh: Tensor) -> Tensor:
    """Return the states in plain operations, of which autograd can differentiate twice."""
    state = gates.new_zeros(gates.shape[0], W_hh.shape[1])
    found = []
    for gate in _in_order(gates.unbind(1), backwards):
        state = gru_update(gate, functional.linear(state, W_hh, b_hh), state)
        found.append(state)
    return torch.stack(list(_in_order(found, backwards)), 1)
