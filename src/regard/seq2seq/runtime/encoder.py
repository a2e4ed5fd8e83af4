"""The encoder: a GRU or LSTM over padded sequences, each within its own length."""

from collections.abc import Mapping

import numpy as np

from regard.seq2seq.runtime.cells import Floats, FromSymbol, Ids, Linear, advance

__all__ = ["Encoder"]


class Encoder:
    """Source symbols to encoder states, as :class:`regard.seq2seq.encoder.Encoder`.

    Parameters
    ----------
    weights : mapping
        Under the names that they have there.
    cell : {"gru", "lstm"}
    layers : int
    bidirectional : bool
    """

    def __init__(
        self, weights: Mapping[str, Floats], *, cell: str, layers: int, bidirectional: bool
    ) -> None:
        directions = ("", "_reverse") if bidirectional else ("",)
        self._cell, self._directions = cell, len(directions)

        def of(name: str, layer: int) -> list[Floats]:
            return [weights[f"{cell}.{name}_l{layer}{end}"] for end in directions]

        embedding = weights["embedding.weight"]
        self._d_hidden = weights[f"{cell}.weight_hh_l0"].shape[1]
        # The gates of all directions beside each other.
        joined = [
            (np.concatenate(of("weight_ih", i)), np.concatenate(of("bias_ih", i)))
            for i in range(layers)
        ]
        self._first = FromSymbol(embedding, *joined[0])
        self._higher = [Linear(*each) for each in joined[1:]]
        self._from_state = [
            np.stack([np.ascontiguousarray(w.T) for w in of("weight_hh", i)])
            for i in range(layers)
        ]
        self._biases = [np.stack(of("bias_hh", i))[:, None] for i in range(layers)]
        self._bridge = None
        if "bridge.weight" in weights:
            self._bridge = Linear(weights["bridge.weight"], weights["bridge.bias"])

    def __call__(self, source: Ids, lengths: Ids) -> tuple[Floats, Floats | None]:
        """Encode a batch.

        Parameters
        ----------
        source : (batch, T_enc)
        lengths : (batch,)
            From 1 to T_enc.

        Returns
        -------
        states : (batch, T_enc, d_h)
            Zero on padding.
        initial : (batch, d_state) or None
            The decoder's state before its first step; None without a bridge.
        """
        # The longest first: at every step, those that still go on then come before the others.
        order = np.argsort(-lengths, kind="stable")
        back = np.argsort(order, kind="stable")
        lengths, source = lengths[order], source[order]
        steps = np.arange(source.shape[1])
        going = (lengths > steps[:, None]).sum(1)
        turned = np.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
        states, ends = self._run(self._first(source), going, turned, 0)
        for layer, linear in enumerate(self._higher, 1):
            states, ends = self._run(linear(states), going, turned, layer)
        initial = None
        if self._bridge is not None:
            initial = np.tanh(self._bridge(ends))[back]
        return states[back], initial

    def _run(self, gates: Floats, going: Ids, turned: Ids, layer: int) -> tuple[Floats, Floats]:
        """Run one layer over (batch, T_enc, directions * gates)."""
        batch, t_enc = gates.shape[:2]
        directions, size = self._directions, self._d_hidden
        parted = gates.reshape(batch, t_enc, directions, -1)
        # (directions, T_enc, batch, gates), the backward direction turned round.
        given = np.empty((directions, t_enc, batch, parted.shape[-1]), np.float32)
        given[0] = parted[:, :, 0].swapaxes(0, 1)
        rows = np.arange(batch)[:, None]
        if directions == 2:
            given[1] = parted[rows, turned, 1].swapaxes(0, 1)
        d_state = size * (2 if self._cell == "lstm" else 1)
        state = np.zeros((directions, batch, d_state), np.float32)
        found = np.zeros((directions, t_enc, batch, size), np.float32)
        for step, count in enumerate(going):
            before = state[:, :count]
            hidden = before[..., :size] @ self._from_state[layer]
            hidden += self._biases[layer]
            after = advance(given[:, step, :count], hidden, before)
            state[:, :count] = after
            found[:, step, :count] = after[..., :size]
        states = np.empty((batch, t_enc, directions * size), np.float32)
        states[..., :size] = found[0].swapaxes(0, 1)
        if directions == 2:
            states[..., size:] = found[1].swapaxes(0, 1)[rows, turned]
        ends = state[..., :size].swapaxes(0, 1).reshape(batch, -1)
        return states, ends
