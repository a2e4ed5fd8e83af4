"""Bahdanau's decoder with the equations of the paper's own appendix, gate by gate."""

from dataclasses import replace
from math import sqrt
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from regard.attention.normalizers import Normalizer
from regard.errors import ConventionError, ShapeError, explain
from regard.nn.decoder import Decoded, Decoder, DecoderState, Stepped
from regard.nn.memory import Memory, require_own
from regard.nn.modules import AdditiveAttention
from regard.nn.shapes import positive

__all__ = ["PaperBahdanauDecoder"]


class _FromInput(NamedTuple):
    """What an input alone contributes to a step, projected beforehand."""

    candidate: Tensor
    z: Tensor
    r: Tensor
    readout: Tensor | None


class PaperBahdanauDecoder(Decoder):
    r"""The decoder of Bahdanau et al. [1]_, appendices A.1.1, A.1.2 and A.2.2, as printed.

    With x_i for the embedding E y_{i-1} of the previous word:

    .. math::
       e_{ij} &= v_a^\top \tanh(W_a s_{i-1} + U_a h_j), \quad
       c_i = \textstyle\sum_j \mathrm{softmax}_j(e_i) \, h_j \\
       z_i &= \sigma(W_z x_i + U_z s_{i-1} + C_z c_i) \\
       r_i &= \sigma(W_r x_i + U_r s_{i-1} + C_r c_i) \\
       \tilde s_i &= \tanh(W x_i + U [r_i \circ s_{i-1}] + C c_i) \\
       s_i &= (1 - z_i) \circ s_{i-1} + z_i \circ \tilde s_i, \quad
       s_0 = \tanh(W_s \overleftarrow{h}_1) \\
       \tilde t_i &= U_o s_{i-1} + V_o x_i + C_o c_i, \quad
       t_i = [\max(\tilde t_{i,2j-1}, \tilde t_{i,2j})]_{j=1..l}, \quad
       p(y_i) \propto \exp(W_o t_i)

    Parameters
    ----------
    d_in : int
        Size of an input, the paper's m.
    d_s : int
        Size of a state, n.
    d_h : int
        Size of an encoder state, 2n: the forward half first, then the backward half.
    d_attn : int
        Size of the space of comparison, n'.
    d_maxout : int, optional
        Size l of the maxout layer. Without it the output is [s_i; c_i], for a layer of the
        caller's.
    d_vocab : int, optional
        Size of the vocabulary. With it the output is the unnormalised log-probabilities
        W_o t_i; needs `d_maxout`.
    bias : bool
        Whether z, r, the candidate, s_0 and the maxout layer have biases. The paper has them
        and leaves them out of its equations "to increase readability".
    normalizer : str or callable
        As of :class:`~regard.nn.modules.AdditiveAttention`; the paper's is the softmax.

    Attributes
    ----------
    d_out : int
        `d_vocab`, else `d_maxout`, else d_s + d_h.
    attention : regard.nn.AdditiveAttention
        Holds W_a, U_a and v_a; queried with s_{i-1}, the state *before* the step.
    W, W_z, W_r : (d_s, d_in)
    U, U_z, U_r : (d_s, d_s)
    C, C_z, C_r : (d_s, d_h)
    W_s : (d_s, d_h / 2)
    b, b_z, b_r, b_s : (d_s,), or None without `bias`
    U_o, V_o, C_o : (2 d_maxout, d_s), (2 d_maxout, d_in), (2 d_maxout, d_h)
        With `d_maxout`.
    b_o : (2 d_maxout,), or None
    W_o : (d_vocab, d_maxout)
        With `d_vocab`.

    Raises
    ------
    ShapeError
        A size is not a positive integer, or d_h is odd.
    ConventionError
        `d_vocab` without `d_maxout`, or an unknown normaliser.

    Notes
    -----
    No deviation from the equations. :class:`~regard.nn.decoders.BahdanauDecoder` has PyTorch's
    cell instead; here the reset gate multiplies the state *before* the product with U, z lets
    the candidate in instead of keeping the old state, and the maxout layer reads the state
    before the step. The parameters start as PyTorch's do, uniform by their fan-in;
    :meth:`initialize_as_paper` starts them as appendix B.1 does.

    References
    ----------
    .. [1] Bahdanau, Cho and Bengio, "Neural Machine Translation by Jointly Learning to Align
       and Translate", ICLR 2015, appendix A. arXiv:1409.0473

    Examples
    --------
    >>> decoder = PaperBahdanauDecoder(d_in=3, d_s=5, d_h=14, d_attn=11, d_maxout=7)
    >>> memory = decoder.prepare(torch.randn(2, 13, 14), torch.tensor([13, 4]))
    >>> decoded = decoder(torch.randn(2, 17, 3), memory, decoder.first_state(memory))
    >>> decoded.outputs.shape, decoded.weights.shape
    (torch.Size([2, 17, 7]), torch.Size([2, 17, 13]))
    """

    W: Tensor
    W_z: Tensor
    W_r: Tensor
    U: Tensor
    U_z: Tensor
    U_r: Tensor
    C: Tensor
    C_z: Tensor
    C_r: Tensor
    W_s: Tensor
    U_o: Tensor
    V_o: Tensor
    C_o: Tensor
    W_o: Tensor
    b: Tensor | None
    b_z: Tensor | None
    b_r: Tensor | None
    b_s: Tensor | None
    b_o: Tensor | None

    def __init__(
        self,
        d_in: int,
        d_s: int,
        d_h: int,
        d_attn: int,
        *,
        d_maxout: int | None = None,
        d_vocab: int | None = None,
        bias: bool = False,
        normalizer: str | Normalizer = "softmax",
    ) -> None:
        call = "PaperBahdanauDecoder"
        readout = {"d_maxout": d_maxout, "d_vocab": d_vocab}
        given = {name: size for name, size in readout.items() if size is not None}
        positive(call, d_in=d_in, d_s=d_s, d_h=d_h, d_attn=d_attn, **given)
        _require_halves(call, d_h)
        if d_maxout is None and d_vocab is not None:
            raise ConventionError(
                explain(
                    f"{call}(): `d_vocab` needs `d_maxout`",
                    expected="d_maxout=a size beside d_vocab",
                    got=f"d_maxout=None, d_vocab={d_vocab}",
                    because="W_o reads the maxout layer",
                )
            )
        super().__init__(d_in, d_s, d_vocab or d_maxout or d_s + d_h, d_h=d_h)
        self.d_attn, self.d_maxout, self.d_vocab = d_attn, d_maxout, d_vocab
        self.attention = AdditiveAttention(d_s, d_h, d_attn, normalizer=normalizer)
        for gate in ("", "_z", "_r"):
            self._matrix(f"W{gate}", d_s, d_in)
            self._matrix(f"U{gate}", d_s, d_s)
            self._matrix(f"C{gate}", d_s, d_h)
            self._vector(f"b{gate}", d_s, bias)
        self._matrix("W_s", d_s, d_h // 2)
        self._vector("b_s", d_s, bias)
        self._vector("b_o", 2 * (d_maxout or 0), bias and d_maxout is not None)
        if d_maxout is not None:
            for name, size in (("U_o", d_s), ("V_o", d_in), ("C_o", d_h)):
                self._matrix(name, 2 * d_maxout, size)
        if d_maxout is not None and d_vocab is not None:
            self._matrix("W_o", d_vocab, d_maxout)

    def first_state(self, memory: Memory) -> Tensor:
        """Return s_0 = tanh(W_s h), h the backward half of the first encoder state.

        Parameters
        ----------
        memory : Memory
            What this decoder's ``prepare`` returned.

        Returns
        -------
        initial_state : (batch, d_s)
            Within -1 .. 1; for ``start`` and ``forward``. An example without a source gets
            tanh of the bias, or 0.

        Raises
        ------
        ConventionError
            A memory that another decoder prepared.
        """
        require_own("PaperBahdanauDecoder.first_state", memory, self)
        backward = memory.key[:, 0, memory.key.shape[-1] // 2 :]
        return torch.tanh(functional.linear(backward, self.W_s, self.b_s))

    def initialize_as_paper(self) -> None:
        """Start the parameters as appendix B.1 does.

        U, U_z and U_r orthogonal; W_a and U_a normal with a deviation of 0.001; v_a and biases
        zero; all other matrices normal with a deviation of 0.01.
        """
        for name, parameter in self.named_parameters():
            if name in ("U", "U_z", "U_r"):
                nn.init.orthogonal_(parameter)
            elif parameter.ndim == 1:
                nn.init.zeros_(parameter)
            else:
                nn.init.normal_(parameter, std=0.001 if name.startswith("attention.") else 0.01)

    def _matrix(self, name: str, rows: int, columns: int) -> None:
        parameter = nn.Parameter(torch.empty(rows, columns))
        nn.init.uniform_(parameter, -1 / sqrt(columns), 1 / sqrt(columns))
        self.register_parameter(name, parameter)

    def _vector(self, name: str, size: int, exists: bool) -> None:
        self.register_parameter(name, nn.Parameter(torch.zeros(size)) if exists else None)

    def _prepare(self, encoder_states: Tensor, key_mask: Tensor | None) -> Memory:
        return replace(self.attention.prepare(encoder_states, key_mask=key_mask), owner=self)

    def _run(self, inputs: Tensor, memory: Memory, initial_state: Tensor) -> Decoded:
        every, hidden, found = self._read(inputs), initial_state, []
        for t in range(inputs.shape[1]):
            now = _FromInput(*(None if part is None else part[:, t] for part in every))  # type: ignore[arg-type] # None stays only where it was
            output, hidden, context, weights = self._update(now, memory, hidden)
            found.append((output, hidden, context, weights))
        if found:
            return Decoded(*(torch.stack(each, 1) for each in zip(*found, strict=True)))
        sizes = (self.d_out, self.d_s, memory.value.shape[-1], memory.key.shape[1])
        return Decoded(*(inputs.new_zeros(inputs.shape[0], 0, size) for size in sizes))

    def _step(self, given: Tensor, memory: Memory, hidden: Tensor) -> Stepped:
        output, after, _, weights = self._update(self._read(given), memory, hidden)
        return Stepped(output, DecoderState(after, self), weights)

    def _read(self, inputs: Tensor) -> _FromInput:
        linear = functional.linear
        return _FromInput(
            linear(inputs, self.W, self.b),
            linear(inputs, self.W_z, self.b_z),
            linear(inputs, self.W_r, self.b_r),
            None if self.d_maxout is None else linear(inputs, self.V_o, self.b_o),
        )

    def _update(
        self, now: _FromInput, memory: Memory, s: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the output, s_i, c_i and the weights of one step from s_{i-1}."""
        linear = functional.linear
        attended, weights = self.attention(
            s.unsqueeze(1), replace(memory, owner=self.attention)
        )
        c = attended.squeeze(1)
        z = torch.sigmoid(now.z + linear(s, self.U_z) + linear(c, self.C_z))
        r = torch.sigmoid(now.r + linear(s, self.U_r) + linear(c, self.C_r))
        candidate = torch.tanh(now.candidate + linear(r * s, self.U) + linear(c, self.C))
        after = (1 - z) * s + z * candidate
        if now.readout is None or self.d_maxout is None:
            output = torch.cat([after, c], -1)
        else:
            pairs = now.readout + linear(s, self.U_o) + linear(c, self.C_o)
            output = pairs.view(-1, self.d_maxout, 2).amax(-1)
            if self.d_vocab is not None:
                output = linear(output, self.W_o)
        return output, after, c, weights.squeeze(1)


def _require_halves(call: str, d_h: int) -> None:
    if d_h % 2:
        raise ShapeError(
            explain(
                f"{call}(): `d_h` has no two halves",
                expected="an even d_h: a forward and a backward half",
                got=f"d_h={d_h}",
                because="s_0 is made of the backward half of the first encoder state",
            )
        )
