r"""The whole teacher-forced Bahdanau decoder with an LSTM in place of its GRU.

For t = 1 .. T_dec, with keys projected and input gates computed beforehand:

.. math::
   q_t &= W_a s_{t-1}, \quad a_t = \mathrm{softmax}(v_a^\top \tanh(q_t + k)), \quad
   c_t = a_t H \\
   (s_t, m_t) &= \mathrm{LSTM}(g_t + W_c c_t + W_{hh} s_{t-1},\; m_{t-1})

The loop for a GRU is :mod:`regard.kernels.gru_loop`.
"""

from torch import Tensor

from regard.kernels.gru_recorded import LoopOutputs
from regard.kernels.lstm_recorded import LstmInputs, recorded_loop
from regard.kernels.prepared import PreparedKeys

__all__ = ["LoopOutputs", "LstmInputs", "bahdanau_lstm_loop"]


def bahdanau_lstm_loop(
    inputs: LstmInputs, key_mask: Tensor | None, *, keys: PreparedKeys | None = None
) -> LoopOutputs:
    """Run the decoder over a whole sequence of known inputs.

    Parameters
    ----------
    inputs : LstmInputs
    key_mask : (batch, T_enc), bool, or None
        True = may attend. Keys and values at False must be finite; an example without any
        permitted key has zero weights, contexts and gradients of its keys.
    keys : PreparedKeys, optional
        What :func:`~regard.kernels.prepared.prepare` made of ``inputs.key`` and `key_mask`.

    Returns
    -------
    outputs : LoopOutputs
        All three carry gradients. The states are h alone.
    """
    return recorded_loop(inputs, key_mask, keys)
