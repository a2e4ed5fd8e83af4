"""One call of a subject: from the contract's layout to the subject's own, and back.

Numbers go in and come out as NumPy arrays, batch first, weights always with an axis of heads:
``(batch, heads, T_dec, T_enc)``.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.axes import Array, namespace
from regard.testing.inputs import Inputs
from regard.testing.libraries import library_named
from regard.testing.subject import Subject

__all__ = [
    "Call",
    "Outcome",
    "Returned",
    "module_of",
    "outcome_of",
    "own_mask",
    "parameters_of",
    "prepare",
    "run",
]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came back, as float64 of NumPy."""

    context: np.ndarray | None
    """(batch, T_dec, d); None where only weights are returned."""

    weights: np.ndarray | None
    """(batch, heads, T_dec, T_enc), heads = 1 where the subject has none; None without."""

    averaged: bool = False
    """Whether several heads came as one matrix."""


@dataclass(frozen=True, eq=False)
class Returned:
    """What came back, in the subject's library but the contract's layout."""

    context: Array | None
    """(batch, T_dec, d)"""

    weights: Array | None
    """(batch, T_dec, T_enc), or with heads as their second axis."""


@dataclass(frozen=True, eq=False)
class Call:
    """A call that is ready to be made, any number of times: the arrays it will pass."""

    subject: Subject
    arrays: dict[str, Array]
    """query, key and value as far as the subject takes them; its own library and layout."""

    mask: Array | None
    parameters: dict[str, Array]
    module: Any
    need_weights: bool = True

    def __call__(self) -> Returned:
        """Make the call."""
        subject = self.subject
        options: dict[str, Any] = dict(self.parameters)
        if subject.weights == "asked":
            options["need_weights"] = self.need_weights
        made = [_split(subject, self._one(one, mask, options)) for one, mask in self._pieces()]
        contexts = [context for context, _ in made if context is not None]
        weights = [one for _, one in made if one is not None]
        context = self._joined(contexts) if contexts else None
        if context is not None and subject.layout == "T batch d":
            context = namespace(context).moveaxis(context, 0, 1)
        return Returned(context, self._joined(weights) if weights else None)

    def leaves(self) -> dict[str, Array]:
        """Return everything a gradient can be taken for."""
        named = {} if self.module is None else dict(self.module.named_parameters())
        return {**self.arrays, **self.parameters, **named}

    def _one(self, arrays: list[Array], mask: Array | None, options: dict[str, Any]) -> Any:
        masked = {} if mask is None else {"mask": mask}
        first = () if self.module is None else (self.module,)
        return self.subject.call(*first, *arrays, **masked, **options)

    def _pieces(self) -> Iterator[tuple[list[Array], Array | None]]:
        """Yield the arguments of each single call, in order of batch and then T_dec."""
        layout, mask = self.subject.layout, self.mask
        query, *keys = self.arrays.values()
        if layout in ("batch T d", "T batch d"):
            yield [query, *keys], mask
            return
        if layout == "batch d":
            for t in range(query.shape[1]):
                yield [query[:, t, ...], *keys], _row(self.subject, mask, t)
            return
        for b in range(len(query)):
            own = [_at(each, b) for each in keys]
            row = None if mask is None else _at(mask, b)
            if layout == "T d":
                yield [_at(query, b), *own], row
                continue
            for t in range(len(_at(query, b))):
                paired = row is not None and _paired(self.subject)
                yield [_at(_at(query, b), t), *own], _at(row, t) if paired else row

    def _joined(self, items: list[Array]) -> Array:
        """Join the results of the single calls, a decoder step's along T_dec first."""
        stack, layout = library_named(self.subject.library).stack, self.subject.layout
        if layout == "batch d":
            return stack(items, -2)  # before d, or before T_enc
        if layout == "T d":
            return stack(items, 0)
        if layout == "d":
            n = len(self.arrays["query"][0])
            return stack([stack(items[i : i + n], -2) for i in range(0, len(items), n)], 0)
        return items[0]


def prepare(
    subject: Subject,
    inputs: Inputs,
    *,
    dtype: str | None = None,
    need_weights: bool = True,
    order: Callable[[np.ndarray], np.ndarray] | None = None,
    module: Any = None,
) -> Call:
    """Turn inputs into the subject's own arrays.

    Parameters
    ----------
    subject, inputs
        What is asked, and with what.
    dtype : str, optional
        Number type; the subject's first if left out.
    need_weights : bool
        For subjects that can be asked either way.
    order : callable, optional
        Lays an array of NumPy out in memory in another order.
    module : optional
        One that :func:`module_of` made, to be used again; a new one if left out.
    """
    dtype = dtype or subject.dtypes[0]
    library = library_named(subject.library)
    lay = order or (lambda array: array)

    def make(array: np.ndarray) -> Array:
        # A copy, so that a subject that writes cannot reach the contract's own arrays.
        return library.make(lay(np.array(array)), dtype, subject.device)

    if subject.module is not None and module is None:
        module = module_of(subject, dtype)
    names = ["query", "key", "value"][: 2 + (subject.d_v is not None)]
    states = {name: getattr(inputs, name) for name in names}
    if subject.self_attention:
        states = {"query": inputs.key}
    if subject.layout == "T batch d":
        states = {name: array.swapaxes(0, 1) for name, array in states.items()}
    return Call(
        subject=subject,
        arrays={name: make(array) for name, array in states.items()},
        mask=None if inputs.mask is None else make(own_mask(subject, inputs.mask)),
        parameters={name: make(np.asarray(p)) for name, p in subject.parameters.items()},
        module=module,
        need_weights=need_weights,
    )


def run(subject: Subject, inputs: Inputs, **options: Any) -> Outcome:
    """Call once; the options are those of :func:`prepare`."""
    library = library_named(subject.library)
    with library.session():
        return outcome_of(subject, prepare(subject, inputs, **options)())


def outcome_of(subject: Subject, returned: Returned) -> Outcome:
    """Read a result back to NumPy."""
    read = library_named(subject.library).read
    context = None if returned.context is None else read(returned.context)
    if returned.weights is None:
        return Outcome(context, None)
    weights = read(returned.weights)
    single = weights.ndim == 3
    return Outcome(
        context,
        weights[:, None] if single else weights,
        averaged=single and (subject.heads or 1) > 1,
    )


def parameters_of(subject: Subject, dtype: str | None = None) -> dict[str, np.ndarray]:
    """Return everything learned that a subject uses, by name, as it is in a number type."""
    dtype = dtype or subject.dtypes[0]
    library = library_named(subject.library)
    with library.session():
        made = {
            name: library.make(np.array(each), dtype, subject.device)
            for name, each in subject.parameters.items()
        }
        if subject.module is not None:
            made |= dict(module_of(subject, dtype).named_parameters())
        return {name: library.read(each) for name, each in made.items()}


def module_of(subject: Subject, dtype: str) -> Any:
    """Return the subject's module in a number type: a copy, in evaluation mode."""
    if not hasattr(subject.module, "parameters"):
        return subject.module(dtype)
    import torch  # noqa: PLC0415 - only for subjects that hold a module of it

    return copy.deepcopy(subject.module).to(getattr(torch, dtype)).eval()


def own_mask(subject: Subject, mask: np.ndarray) -> np.ndarray:
    """Return the mask (batch, T_dec, T_enc), True = may attend, in the subject's own terms."""
    keys = mask[:, 0]
    if subject.mask == "lengths":
        return np.asarray(keys.sum(axis=-1))
    if not _paired(subject):
        mask = keys
    return np.logical_not(mask) if subject.mask == "ignore" else mask


def _paired(subject: Subject) -> bool:
    return subject.mask != "lengths" and subject.mask_axes == "T_dec T_enc"


def _at(array: Array, index: int) -> Array:
    # The array API wants the rest of the axes named; lists have no such word.
    return array[index] if isinstance(array, list) else array[index, ...]


def _row(subject: Subject, mask: Array | None, t: int) -> Array | None:
    return mask[:, t, ...] if mask is not None and _paired(subject) else mask


def _split(subject: Subject, result: Any) -> tuple[Array | None, Array | None]:
    if subject.weights == "only":
        return None, result
    if isinstance(result, tuple):
        return result[0], result[1]
    return result, None
