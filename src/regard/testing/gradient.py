"""Derivatives of a subject: by its own library, and by differences."""

from dataclasses import replace
from typing import Any

import numpy as np

from regard.axes import Array
from regard.testing.inputs import Inputs
from regard.testing.libraries import library_named
from regard.testing.run import Call, Returned, prepare
from regard.testing.subject import Subject
from regard.testing.tolerances import DIFFERENCE

__all__ = ["Loss", "gradients", "gradients_of", "slope"]


class Loss:
    """A sum over chosen rows of context and weights, each number with its own factor.

    Parameters
    ----------
    rng : numpy.random.Generator
        Draws the factors; one loss serves several calls of the same shapes.
    rows : (batch, T_dec), bool
        The queries whose results count. The others' are not even multiplied by 0.
    """

    def __init__(self, rng: np.random.Generator, rows: np.ndarray) -> None:
        self._seed = int(rng.integers(2**31))
        self._rows = np.nonzero(rows)

    def __call__(self, subject: Subject, returned: Returned) -> Array:
        """Return the loss as a number of the subject's library."""
        make = library_named(subject.library).make
        rng = np.random.default_rng(self._seed)
        b, t = self._rows
        total: Any = 0.0
        for results, heads in ((returned.context, False), (returned.weights, True)):
            if results is None:
                continue
            rows = results[b, :, t] if heads and results.ndim == 4 else results[b, t]
            factors = make(
                rng.normal(size=tuple(rows.shape)), subject.dtypes[0], subject.device
            )
            total = total + (rows * factors).sum()
        return total


def gradients(subject: Subject, inputs: Inputs, loss: Loss) -> dict[str, np.ndarray]:
    """Return the gradient for every input and parameter, by name; zeros where none flows."""
    library = library_named(subject.library)
    with library.session():
        call = prepare(subject, inputs)
        read = {name: library.read(each) for name, each in gradients_of(call, loss).items()}
    return {
        name: _turned(subject, each) if name in call.arrays else each
        for name, each in read.items()
    }


def gradients_of(call: Call, loss: Loss) -> dict[str, Array]:
    """Return the gradient for every array of a call, in its own library and layout."""
    return _by_jax(call, loss) if call.subject.library == "jax" else _by_torch(call, loss)


def slope(
    subject: Subject, inputs: Inputs, loss: Loss, name: str, direction: np.ndarray
) -> float:
    """Return the central difference of the loss along a direction of one input or parameter."""
    library = library_named(subject.library)
    values = []
    with library.session():
        for step in (DIFFERENCE, -DIFFERENCE):
            call = prepare(subject, inputs)
            move = step * (_turned(subject, direction) if name in call.arrays else direction)
            values.append(_loss_at(call, loss, name, np.array(move)))
    return (values[0] - values[1]) / (2 * DIFFERENCE)


def _turned(subject: Subject, states: np.ndarray) -> np.ndarray:
    """Exchange batch and T where the subject has them the other way round."""
    return states.swapaxes(0, 1) if subject.layout == "T batch d" else states


def _loss_at(call: Call, loss: Loss, name: str, move: np.ndarray) -> float:
    subject = call.subject
    library = library_named(subject.library)
    shift = library.make(move, subject.dtypes[0], subject.device)
    if name in call.arrays:
        moved = replace(call, arrays={**call.arrays, name: call.arrays[name] + shift})
        return float(library.read(loss(subject, moved())))
    if name in call.parameters:
        parameters = {**call.parameters, name: call.parameters[name] + shift}
        return float(library.read(loss(subject, replace(call, parameters=parameters)())))
    held = dict(call.module.named_parameters())[name].data
    before = held.clone()
    held.add_(shift)
    value = float(library.read(loss(subject, call())))
    held.copy_(before)  # a module made by a function may be the same one next time
    return value


def _by_torch(call: Call, loss: Loss) -> dict[str, Array]:
    import torch  # noqa: PLC0415 - the subject's library

    leaves = call.leaves()
    for leaf in leaves.values():
        leaf.requires_grad_()
    total = loss(call.subject, call())
    if not total.requires_grad:
        return {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
    found = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    return {
        name: torch.zeros_like(leaf) if each is None else each
        for (name, leaf), each in zip(leaves.items(), found, strict=True)
    }


def _by_jax(call: Call, loss: Loss) -> dict[str, Array]:
    import jax  # noqa: PLC0415 - the subject's library

    def total(leaves: dict[str, Array]) -> Array:
        own = replace(
            call,
            arrays={name: leaves[name] for name in call.arrays},
            parameters={name: leaves[name] for name in call.parameters},
        )
        return loss(call.subject, own())

    found: dict[str, Array] = jax.grad(total)(call.leaves())
    return found
