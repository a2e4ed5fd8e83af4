"""Luong's decoder with local attention: each step looks only near one source position."""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.local import gaussian, predicted_positions, require_reach, within
from regard.attention.normalizers import Normalizer
from regard.errors import ConventionError, explain
from regard.nn.carrying import CarryingState
from regard.nn.decoder import Decoded, Decoder, DecoderState, Stepped
from regard.nn.memory import Memory
from regard.nn.modules import LuongAttention
from regard.nn.normalize import normalize
from regard.nn.recurrence import layers_of, run_layers, step_layers
from regard.nn.shapes import positive

__all__ = ["LocalLuongDecoder"]


class LocalLuongDecoder(Decoder):
    r"""Decoder with Luong's local attention, monotonic or predictive [1]_.

    .. math::
       s_t &= \mathrm{RNN}(x_t, s_{t-1}) \\
       p_t &= t \;\text{(m)} \quad\text{or}\quad S \,\sigma(v_p^\top \tanh(W_p s_t))
       \;\text{(p)} \\
       a_t(i) &= \mathrm{align}(s_t, h_i), \; |i - p_t| \le D, \quad
       \text{for p times}\; \exp(-(i - p_t)^2 / (2 \sigma^2)), \; \sigma = D / 2 \\
       c_t &= \textstyle\sum_i a_t(i) h_i, \quad \tilde h_t = \tanh(W_c [c_t; s_t])

    Parameters
    ----------
    d_in, d_s, d_h : int
        Sizes of an input, a state and an encoder state.
    kind : {"m", "p"}
        Monotonic, where step t looks at key t, or predictive.
    D : float
        Reach of the window to either side, above 0; the paper takes 10.
    score : {"dot", "general", "concat"}
        As of :class:`~regard.nn.modules.LuongAttention`; ``dot`` needs d_s = d_h.
    d_attn : int, optional
        For ``concat`` only.
    normalizer : str or callable
        As of :class:`~regard.nn.modules.LuongAttention`.
    cell : {"gru", "lstm"}
    layers : int
        On top of each other; the highest asks.
    dropout : float
        Between layers, 0 to below 1.

    Attributes
    ----------
    d_out : int
        d_s: an output is the attentional state, equation 5.
    attention : LuongAttention
    rnn : torch.nn.GRU or torch.nn.LSTM
        Under the name of its kind, ``gru`` or ``lstm``.
    W_c : (d_s, d_h + d_s)
        The context's columns first.
    W_p, v_p : (d_s, d_s), (d_s,)
        Of kind "p".

    Raises
    ------
    ShapeError
        A size is not a positive integer, or ``dot`` with d_s different from d_h.
    ConventionError
        Unknown kind, score, normaliser or cell, D not above 0, or `d_attn` missing for
        ``concat`` or given to another.

    Notes
    -----
    Rows of kind "p" sum to **less than 1**: the Gaussian multiplies normalised weights and the
    paper does not normalise again. A step of kind "m" beyond the source attends nowhere.
    Positions count from 0 and are not rounded (:mod:`regard.attention.local`); S is the place
    behind an example's last permitted key. The state carries the number of the step. The
    paper's recurrence is an LSTM of four layers, with input feeding, which is not here.

    References
    ----------
    .. [1] Luong, Pham and Manning 2015, section 3.2, equations 9 and 10. arXiv:1508.04025

    Examples
    --------
    >>> decoder = LocalLuongDecoder(d_in=3, d_s=5, d_h=7, kind="p", D=2, score="general")
    >>> memory = decoder.prepare(torch.randn(2, 13, 7), torch.tensor([13, 4]))
    >>> decoded = decoder(torch.randn(2, 17, 3), memory, torch.zeros(2, 5))
    >>> decoded.outputs.shape, bool((decoded.weights.sum(-1) < 1).all())
    (torch.Size([2, 17, 5]), True)
    """

    def __init__(
        self,
        d_in: int,
        d_s: int,
        d_h: int,
        *,
        kind: str,
        D: float,
        score: str = "dot",
        d_attn: int | None = None,
        normalizer: str | Normalizer = "softmax",
        cell: str = "gru",
        layers: int = 1,
        dropout: float = 0.0,
    ) -> None:
        call = "LocalLuongDecoder"
        positive(call, d_in=d_in, d_s=d_s, d_h=d_h)
        require_reach(call, D)
        if kind not in ("m", "p"):
            raise ConventionError(
                explain(
                    f"{call}(): `kind` has no such value",
                    expected='kind="m", step t looks at key t, or kind="p", it predicts where',
                    got=f"kind={kind!r}",
                )
            )
        super().__init__(d_in, d_s, d_s, d_h=d_h, cell=cell, layers=layers)
        self.kind, self.D = kind, D
        self.attention = LuongAttention(d_s, d_h, score, d_attn, normalizer=normalizer)
        self.add_module(cell, layers_of(cell, d_in, d_s, layers, dropout=dropout))
        self.W_c = nn.Parameter(torch.empty(d_s, d_h + d_s))
        nn.init.uniform_(self.W_c, -((d_h + d_s) ** -0.5), (d_h + d_s) ** -0.5)
        if kind == "p":
            self.W_p = nn.Parameter(torch.empty(d_s, d_s))
            self.v_p = nn.Parameter(torch.empty(d_s))
            for parameter in (self.W_p, self.v_p):
                nn.init.uniform_(parameter, -(d_s**-0.5), d_s**-0.5)

    def start(self, initial_state: Tensor) -> CarryingState:
        """Return where decoding begins, before step 0.

        Parameters
        ----------
        initial_state : (batch, d_state)
            s_0, often a projection of the encoder's last state.

        Raises
        ------
        ShapeError, BackendError
            It does not fit the decoder.
        """
        state = super().start(initial_state)
        return CarryingState(state.hidden, self, None)

    def _prepare(self, encoder_states: Tensor, key_mask: Tensor | None) -> Memory:
        return replace(self.attention.prepare(encoder_states, key_mask=key_mask), owner=self)

    def _run(self, inputs: Tensor, memory: Memory, initial_state: Tensor) -> Decoded:
        first = inputs.new_zeros(inputs.shape[0], dtype=torch.int64)
        states, _ = run_layers(self.rnn, inputs, initial_state)
        return self._ask(first, states, memory)

    def _advance(self, given: Tensor, memory: Memory, state: DecoderState) -> Stepped:
        assert isinstance(state, CarryingState)  # start() and this method make no others
        first = state.carried
        if first is None:
            first = given.new_zeros(given.shape[0], dtype=torch.int64)
        seen, last = step_layers(self.rnn, given, state.hidden)
        decoded = self._ask(first, seen.unsqueeze(1), memory)
        after = CarryingState(last, self, first + 1)
        assert decoded.weights is not None  # this decoder always attends
        return Stepped(decoded.outputs.squeeze(1), after, decoded.weights.squeeze(1))

    def _ask(self, first: Tensor, states: Tensor, memory: Memory) -> Decoded:
        """Attend with states (batch, T_dec, d_s) of the steps from `first` (batch,) on."""
        positions = self._positions(first, states, memory)
        T_enc = memory.key.shape[1]
        may: Tensor = within(positions, D=self.D, T_enc=T_enc)
        if memory.key_mask is not None:
            may = may & memory.key_mask.unsqueeze(1)
        weights = normalize(
            self.attention.normalizer,
            self.attention._scores(states, replace(memory, owner=self.attention)),
            may,
        )
        if self.kind == "p":
            factor = gaussian(positions, D=self.D, T_enc=T_enc)
            weights = weights * factor.to(weights.dtype)
        contexts = torch.bmm(weights.to(memory.value.dtype), memory.value)
        outputs = torch.tanh(functional.linear(torch.cat([contexts, states], -1), self.W_c))
        return Decoded(outputs, states, contexts, weights)

    def _positions(self, first: Tensor, states: Tensor, memory: Memory) -> Tensor:
        """Return p_t of every step, (batch, T_dec), float32 at least: bfloat16 cannot count."""
        dtype = torch.promote_types(states.dtype, torch.float32)
        if self.kind == "m":
            steps = torch.arange(states.shape[1], device=states.device)
            return (first.unsqueeze(1) + steps).to(dtype)
        batch, T_enc = memory.key.shape[:2]
        ends = torch.arange(1, T_enc + 1, device=states.device).expand(batch, T_enc)
        if memory.key_mask is not None:
            ends = ends * memory.key_mask
        W_p, v_p = self.W_p.to(dtype), self.v_p.to(dtype)
        found: Tensor = predicted_positions(states.to(dtype), ends.amax(1), W_p=W_p, v_p=v_p)
        return found
