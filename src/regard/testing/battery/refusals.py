"""Clause 11: a mistake in an argument is named, not computed."""

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regard.axes import Array
from regard.testing.battery.clause import Broken
from regard.testing.inputs import Inputs, inputs_for, mask_for
from regard.testing.libraries import library_named
from regard.testing.run import Call, own_mask, prepare
from regard.testing.subject import Subject

__all__ = ["refusals"]

# What computes, by PyTorch's own names; looking at shapes and making views is no arithmetic.
_ARITHMETIC = {"mm", "bmm", "addmm", "baddbmm", "mv", "addmv", "dot", "exp", "tanh", "sigmoid"}
_ARITHMETIC |= {"_softmax", "softmax", "_scaled_dot_product_flash_attention_for_cpu"}


@dataclass(frozen=True, eq=False)
class _Mistake:
    what: str
    call: Call
    blamed: tuple[str, ...]  # any of these arguments may be called the wrong one
    size: int | None = None  # the size that does not fit, to be read in the text


def refusals(subject: Subject, rng: np.random.Generator) -> str:
    """A wrong shape, number type or mask is refused before any arithmetic, and named.

    Every mistake raises an error whose text names the argument (either of two that disagree)
    and the size that came. An axis of size 1 is not broadcast; integers and floating-point
    numbers are not masks; two number types are not mixed. On PyTorch the operations that ran
    before the error are looked at: none may have computed.
    """
    inputs = inputs_for(subject, rng)
    if subject.mask:
        inputs = inputs.with_mask(mask_for(subject, rng, inputs))
    library = library_named(subject.library)
    faults: dict[str, list[str]] = {}
    asked = 0
    with library.session():
        for mistake in _mistakes(subject, inputs):
            asked += 1
            fault = _fault(subject, mistake)
            if fault:
                faults.setdefault(fault, []).append(mistake.what)
    if faults:
        wrong = sum(map(len, faults.values()))
        got = "; ".join(f"{fault}: {', '.join(which)}" for fault, which in faults.items())
        raise Broken(
            f"{wrong} of {asked} mistakes", got, "an error that names the argument and its size"
        )
    return f"{asked} mistakes"


def _fault(subject: Subject, mistake: _Mistake) -> str:
    ran: list[str] = []
    try:
        with _watched(subject, ran):
            mistake.call()
    except Exception as error:  # every error is an answer here
        text = str(error)
        said = [subject.names.get(name, name) for name in mistake.blamed]
        if not any(re.search(rf"\b{re.escape(name)}\b", text) for name in said):
            return "the error does not name the argument"
        if mistake.size is not None and not re.search(rf"\b{mistake.size}\b", text):
            return "the error does not say which size came"
        return f"computed {ran[0]} first" if ran else ""
    return "ran without an error"


@contextlib.contextmanager
def _watched(subject: Subject, ran: list[str]) -> Iterator[None]:
    """Note the arithmetic that runs inside, where the library can tell."""
    if subject.library != "torch" or subject.staged:
        yield
        return
    # The only door there is to what PyTorch runs.
    from torch.utils import _python_dispatch  # noqa: PLC0415 - optional

    mode: Any = _python_dispatch.TorchDispatchMode  # untyped in torch

    class Watch(mode):  # type: ignore[misc] # for that reason
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            del types
            name = func.overloadpacket.__name__
            if name in _ARITHMETIC:
                ran.append(name)
            return func(*args, **(kwargs or {}))

    with Watch():
        yield


def _mistakes(subject: Subject, inputs: Inputs) -> Iterator[_Mistake]:
    batched = "batch" in subject.layout
    parameters = tuple(subject.parameters)
    pair = ("query", "key", "value")
    if not subject.self_attention:
        if batched:
            one = replace(inputs, query=inputs.query[:1])
            yield _Mistake("a query for a batch of 1", prepare(subject, one), pair, 1)
            one = replace(inputs, key=inputs.key[:1], value=inputs.value[:1])
            yield _Mistake("keys for a batch of 1", prepare(subject, one), pair, 1)
        if subject.d_v is not None:
            longer = replace(inputs, value=_longer(inputs.value, 1))
            wrong = prepare(subject, longer)
            yield _Mistake("one value too many", wrong, ("key", "value"), inputs.T_enc + 1)
        key = _longer(inputs.key, 2)
        wide = replace(inputs, key=key, value=inputs.value if subject.d_v else key)
        blamed = (*pair, *parameters)
        yield _Mistake(
            "keys a feature too wide", prepare(subject, wide), blamed, subject.d_h + 1
        )
    wide = replace(inputs, query=_longer(inputs.query, 2))
    if subject.self_attention:
        wide = replace(inputs, key=wide.query, value=wide.query)
    yield _Mistake(
        "a query a feature too wide",
        prepare(subject, wide),
        ("query", "key", *parameters),
        subject.d_s + 1,
    )
    if subject.layout == "batch T d" and not subject.self_attention:
        call = prepare(subject, inputs)
        flat = replace(call, arrays={**call.arrays, "query": call.arrays["query"][0, ...]})
        yield _Mistake("a query without a batch axis", flat, ("query",))
    yield from _mixed_types(subject, inputs)
    yield from _masks(subject, inputs, batched=batched)


def _mixed_types(subject: Subject, inputs: Inputs) -> Iterator[_Mistake]:
    if len(subject.dtypes) < 2 or subject.self_attention:
        return
    wide, narrow = prepare(subject, inputs), prepare(subject, inputs, dtype=subject.dtypes[1])
    mixed = replace(wide, arrays={**wide.arrays, "key": narrow.arrays["key"]})
    yield _Mistake(f"keys in {subject.dtypes[1]}", mixed, ("query", "key", *subject.parameters))


def _masks(subject: Subject, inputs: Inputs, *, batched: bool) -> Iterator[_Mistake]:
    if inputs.mask is None:
        return
    right = own_mask(subject, inputs.mask)
    wrong: list[tuple[str, np.ndarray, int | None]] = []
    if subject.mask == "lengths":
        wrong.append(("a length beyond the keys", right + inputs.T_enc, None))
        wrong.append(("lengths as floats", right.astype(np.float64), None))
    else:
        wrong.append(("a mask for one key too many", _longer(right, -1), inputs.T_enc + 1))
        wrong.append(("a mask of integers", right.astype(np.int64), None))
        if not subject.float_masks:
            wrong.append(("a mask of floats", right.astype(np.float64), None))
    if batched:
        wrong.append(("a mask for a batch of 1", right[:1], 1))
    for what, mask, size in wrong:
        call = prepare(subject, inputs)
        yield _Mistake(what, replace(call, mask=_own(subject, mask)), ("mask",), size)


def _own(subject: Subject, mask: np.ndarray) -> Array:
    return library_named(subject.library).make(mask.copy(), None, subject.device)


def _longer(array: np.ndarray, axis: int) -> np.ndarray:
    last: Sequence[int] = [-1]
    return np.concatenate([array, np.take(array, last, axis=axis)], axis=axis)
