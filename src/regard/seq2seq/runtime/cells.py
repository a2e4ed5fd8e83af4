"""GRU and LSTM a step at a time, with PyTorch's gates, and linear maps of embeddings.

A state is ``(rows, d_state)``, laid out as :mod:`regard.nn.recurrence` says: of every layer,
the lowest first, h and, of an LSTM, c behind it.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["Cell", "Floats", "FromSymbol", "Ids", "Linear", "advance", "layers_of", "sigmoid"]

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]

# A table of more rows costs more memory than the time it saves is worth.
_TABLE = 4096


def sigmoid(values: Floats) -> Floats:
    """Return the logistic function, computed in place."""
    # By tanh, which no large number can overflow.
    values *= 0.5
    np.tanh(values, out=values)
    values *= 0.5
    values += 0.5
    return values


class Linear:
    """x W^T + b of some columns of a matrix that PyTorch would hold.

    Parameters
    ----------
    weight : (d_out, d_in)
    bias : (d_out,), optional
    """

    def __init__(self, weight: Floats, bias: Floats | None = None) -> None:
        self._turned = np.ascontiguousarray(weight.T)
        self._bias = bias

    def __call__(self, values: Floats) -> Floats:
        """Map (*rows, d_in) to (*rows, d_out)."""
        found: Floats = values @ self._turned
        if self._bias is not None:
            found += self._bias
        return found


class FromSymbol:
    """What symbols contribute to a linear map, (rows, d_out), of their embeddings.

    Parameters
    ----------
    embedding : (symbols, d_in)
    weight : (d_out, d_in)
    bias : (d_out,), optional
    """

    def __init__(self, embedding: Floats, weight: Floats, bias: Floats | None = None) -> None:
        self._embedding, self._linear = embedding, Linear(weight, bias)
        # Each product is computed once for all steps, where there are not too many.
        self._table = self._linear(embedding) if len(embedding) <= _TABLE else None

    def __call__(self, ids: Ids) -> Floats:
        """Return (*rows, d_out) of ids (*rows,)."""
        if self._table is not None:
            return self._table.take(ids, axis=0)
        return self._linear(self._embedding.take(ids, axis=0))


class Cell:
    """One layer, a step at a time.

    Parameters
    ----------
    weights : mapping
        Of one layer under PyTorch's names, ``weight_ih`` .. ``bias_hh`` and a suffix.
    suffix : str
    """

    def __init__(self, weights: Mapping[str, Floats], suffix: str = "") -> None:
        self.weight_ih = weights["weight_ih" + suffix]
        self.bias_ih = weights["bias_ih" + suffix]
        self.d_s = weights["weight_hh" + suffix].shape[1]
        self.lstm = len(self.weight_ih) == 4 * self.d_s
        self._from_state = Linear(weights["weight_hh" + suffix], weights["bias_hh" + suffix])

    @property
    def d_state(self) -> int:
        """Numbers in the state of one row."""
        size: int = self.d_s * (2 if self.lstm else 1)
        return size

    def advance(self, given: Floats, state: Floats) -> Floats:
        """Return the state after a step.

        Parameters
        ----------
        given : (rows, gates)
            ``weight_ih x + bias_ih``.
        state : (rows, d_state)
        """
        hidden = self._from_state(state[..., : self.d_s])
        return advance(given, hidden, state)

    def seen(self, state: Floats) -> Floats:
        """Return h (rows, d_s) of a state of this layer."""
        return state[..., : self.d_s]


def advance(given: Floats, hidden: Floats, state: Floats) -> Floats:
    """Return the state after a step, of the two halves of the gates' sums.

    Parameters
    ----------
    given, hidden : (*rows, gates)
        What the input and what the state before contribute; of a GRU with three gates, of an
        LSTM with four. ``hidden`` is written to.
    state : (*rows, d_state)
    """
    size = state.shape[-1]
    if given.shape[-1] == 3 * size:
        both = hidden[..., : 2 * size]
        both += given[..., : 2 * size]
        sigmoid(both)
        new = hidden[..., 2 * size :]
        new *= both[..., :size]
        new += given[..., 2 * size :]
        np.tanh(new, out=new)
        after: Floats = state - new
        after *= both[..., size:]
        after += new
        return after
    size //= 2
    hidden += given
    sigmoid(hidden[..., : 2 * size])
    new = hidden[..., 2 * size : 3 * size]
    np.tanh(new, out=new)
    new *= hidden[..., :size]
    after = np.empty_like(state)
    cell = after[..., size:]
    np.multiply(state[..., size:], hidden[..., size : 2 * size], out=cell)
    cell += new
    np.tanh(cell, out=after[..., :size])
    after[..., :size] *= sigmoid(hidden[..., 3 * size :])
    return after


def layers_of(weights: Mapping[str, Floats]) -> list[Cell]:
    """Return the layers of a recurrence that PyTorch runs a sequence at a time."""
    count = sum(name.startswith("weight_ih") for name in weights)
    return [Cell(weights, f"_l{layer}") for layer in range(count)]
