r"""The whole teacher-forced Bahdanau decoder with an LSTM in place of its GRU.

For t = 1 .. T_dec, with keys projected and input gates computed beforehand:

.. math::
   q_t &= W_a s_{t-1}, \quad a_t = \mathrm{softmax}(v_a^\top \tanh(q_t + k)), \quad
   c_t = a_t H \\
   (s_t, m_t) &= \mathrm{LSTM}(g_t + W_c c_t + W_{hh} s_{t-1},\; m_{t-1})

The loop for a GRU is :mod:`regard.kernels.gru_loop`.
"""

import torch
from torch import Tensor

from regard.kernels import lstm_native, torch_op
from regard.kernels.choose import additive_path
from regard.kernels.gru_recorded import LoopOutputs
from regard.kernels.lstm_recorded import LstmInputs, recorded_loop
from regard.kernels.prepared import PreparedKeys
from regard.kernels.transforms import by_hand

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

    Notes
    -----
    float32 on the CPU runs in the native library where :mod:`regard.kernels.choose` says so, as
    one node (:mod:`regard.kernels.lstm_native`). Everything else takes the recorded loop, and
    so does a second derivative.
    """
    if by_hand(inputs.value.dtype):
        if keys is None or keys.key.dtype != inputs.key.dtype:  # autocast's are in half
            keys = PreparedKeys(inputs.key, key_mask)
        work = inputs.gates.shape[1] * inputs.key.numel()
        native = additive_path(work, suits_native=torch_op.takes(*inputs)) == "native"
        if native and not torch.is_autocast_enabled("cpu"):
            return lstm_native.native_loop(inputs, key_mask, keys)
    return recorded_loop(inputs, key_mask, keys)
