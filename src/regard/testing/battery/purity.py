"""Clause 5: a call is a function of its arguments, and of nothing else."""

from dataclasses import replace

import numpy as np

from regard.testing.battery.clause import close, require, same
from regard.testing.gradient import Loss, gradients_of
from regard.testing.inputs import inputs_for, mask_for, sizes_for
from regard.testing.libraries import library_named
from regard.testing.run import Call, module_of, outcome_of, prepare, run
from regard.testing.subject import Subject
from regard.testing.tolerances import RESULT

__all__ = ["no_trace"]


def no_trace(subject: Subject, rng: np.random.Generator) -> str:
    """Calls leave no trace: ``f(x)`` depends on the values of x alone.

    Inputs, masks and parameters are never written to, forward or backward. Strides do not
    matter, to rounding. A repeated call gives the same bits after calls with other values and
    other lengths, and those later calls do not reach into results already handed out. Other
    keys, queries or values, of the same shape, are seen: they give other results.
    """
    inputs = inputs_for(subject, rng)
    if subject.mask:
        inputs = inputs.with_mask(mask_for(subject, rng, inputs))
    library = library_named(subject.library)
    with library.session():
        call = prepare(subject, inputs)
        before = _held(call)
        call()
        for name, value in _held(call).items():
            same(f"`{name}`", value, before[name], "after the call that was given it")
        if library.differentiates:
            gradients_of(call, Loss(rng, np.ones(inputs.query.shape[:2], dtype=bool)))
            for name, value in _held(call).items():
                same(f"`{name}`", value, before[name], "after the backward pass")
    _require_history_free(subject, rng)
    _require_fresh(subject, rng)
    if not library.strided:
        return f"one layout in memory: {subject.library} has no strides"
    plain = run(subject, inputs)
    for when, order in (("in Fortran order", np.asfortranarray), ("with gaps", _with_gaps)):
        laid = run(subject, inputs, order=order)
        for what in ("context", "weights"):
            got, expected = getattr(laid, what), getattr(plain, what)
            if expected is not None:
                close(what, got, expected, RESULT[subject.dtypes[0]], f"inputs {when}")
    return ""


def _require_history_free(subject: Subject, rng: np.random.Generator) -> None:
    sizes = sizes_for(subject)
    inputs, other = inputs_for(subject, rng), inputs_for(subject, rng)
    # Shorter, so that a cache or buffer that only ever grows is seen too.
    T_enc = sizes.T_enc - 2
    fewer = replace(sizes, T_enc=T_enc, T_dec=T_enc if subject.self_attention else sizes.T_dec)
    shorter = inputs_for(subject, rng, fewer)
    module = None if subject.module is None else module_of(subject, subject.dtypes[0])
    with library_named(subject.library).session():
        call = prepare(subject, inputs, module=module)
        returned = call()
        first = outcome_of(subject, returned)
        for between in (other, shorter):
            prepare(subject, between, module=module)()
        cases = {
            "read again after other calls": outcome_of(subject, returned),
            "called again after other calls": outcome_of(subject, call()),
        }
    for when, again in cases.items():
        for what in ("context", "weights"):
            if getattr(first, what) is not None:
                same(what, getattr(again, what), getattr(first, what), when)


def _require_fresh(subject: Subject, rng: np.random.Generator) -> None:
    """Change one input at a time: what is kept from an earlier call of its shape is stale."""
    if subject.self_attention or not subject.content_based:
        return
    inputs, other = inputs_for(subject, rng), inputs_for(subject, rng)
    first = run(subject, inputs)
    for name in ("query", "key", "value")[: 2 + (subject.d_v is not None)]:
        changed = {name: getattr(other, name)}
        if name == "key" and subject.d_v is None:
            changed["value"] = other.value
        again = run(subject, replace(inputs, **changed))
        if first.context is None and name == "value":
            continue
        what = "weights" if first.context is None else "context"
        seen, before = getattr(again, what), getattr(first, what)
        require(
            not np.array_equal(seen, before),
            f"the call with another {name}",
            f"the result of the {name} before, bit for bit",
            f"a result of its own {name}",
        )


def _held(call: Call) -> dict[str, np.ndarray]:
    read = library_named(call.subject.library).read
    held = {**call.leaves(), **({} if call.mask is None else {"mask": call.mask})}
    return {name: read(each) for name, each in held.items()}


def _with_gaps(array: np.ndarray) -> np.ndarray:
    return np.repeat(array, 2, axis=-1)[..., ::2]
