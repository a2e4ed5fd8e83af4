"""The kernels for arrays of any library, as :mod:`regard.attention` asks for them."""

from math import prod
from typing import Any

import numpy as np

from regard.axes import Array, library
from regard.kernels import blocks, native
from regard.kernels.choose import additive_path

__all__ = ["additive_scores"]


def additive_scores(query: Array, key: Array, v: Array) -> Array | None:
    """Score with v . tanh(query + key) for every pair, or leave it to the plain formula.

    Parameters
    ----------
    query, key : (*batch, T_dec, d_attn), (*batch, T_enc, d_attn)
        Already projected, and checked.
    v : (d_attn,)

    Returns
    -------
    scores : (*batch, T_dec, T_enc), or None
        None where the plain formula should compute them: where ``REGARD_KERNELS`` is ``off``,
        for other types than float32, for classes of arrays made of NumPy's or PyTorch's, and
        for JAX. There, blocks cost more than they save (measured: twice the time of the plain
        formula, and three times that of the formula under ``jax.jit``).
    """
    home = library(type(query))
    if home == "PyTorch":
        return _torch_scores(query, key, v)
    if home == "JAX" or not str(query.dtype).endswith("float32"):
        return None
    if home == "NumPy" and any(type(each) is not np.ndarray for each in (query, key, v)):
        return None
    path = additive_path(prod(query.shape) * key.shape[-2], suits_native=home == "NumPy")
    if path == "plain":
        return None
    if path == "native":
        return native.additive_scores(query, key, v)
    return blocks.additive_scores(query, key, v)


def _torch_scores(query: Any, key: Any, v: Any) -> Any:
    import torch  # noqa: PLC0415 - only where there are tensors

    from regard.kernels import additive  # noqa: PLC0415

    ours = (torch.Tensor, torch.nn.Parameter)
    if query.dtype != torch.float32 or any(type(each) not in ours for each in (query, key, v)):
        return None
    return additive.additive_scores(query, key, v)
