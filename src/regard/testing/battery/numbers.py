"""Clauses 9 and 10: derivatives are slopes, and results are the paper's."""

from typing import Any

import numpy as np

from regard.testing.battery.clause import NotApplicable, close, require
from regard.testing.gradient import Loss, gradients, slope
from regard.testing.inputs import Inputs, Sizes, inputs_for, mask_for, sizes_for
from regard.testing.libraries import library_named
from regard.testing.run import outcome_of, parameters_of, prepare, run
from regard.testing.subject import Subject
from regard.testing.tolerances import GRADIENT, RESULT, ROW_SUM

__all__ = ["agreement", "slopes"]

_HALF = ("float16", "bfloat16")
_MANY = 4099  # beyond where half precision can count by ones
_MANY_PAIRS = 521  # in self-attention every key is a query as well


def slopes(subject: Subject, rng: np.random.Generator) -> str:
    """Gradients are slopes: each agrees with a finite difference, in float64.

    ``<grad f(x), u> = (f(x + h u) - f(x - h u)) / 2h`` for every input and parameter x, along a
    random direction u that has a part in every number of x; f is a random sum over contexts and
    weights.
    """
    library = library_named(subject.library)
    if not library.differentiates:
        raise NotApplicable(f"{subject.library} has no gradients")
    if subject.dtypes[0] != "float64":
        raise NotApplicable("it does not compute in float64")
    inputs = inputs_for(subject, rng)
    if subject.mask:
        inputs = inputs.with_mask(mask_for(subject, rng, inputs))
    loss = Loss(rng, np.ones(inputs.query.shape[:2], dtype=bool))
    for name, gradient in gradients(subject, inputs, loss).items():
        direction = rng.normal(size=gradient.shape)
        expected = slope(subject, inputs, loss, name, direction)
        got = float((gradient * direction).sum())
        allowed = GRADIENT * max(1.0, abs(expected), abs(got))
        require(
            abs(got - expected) <= allowed,  # False for NaN too
            f"derivative along a random direction of `{name}`",
            f"{got:.9g}",
            f"{expected:.9g} within {allowed:.1e}, the finite difference",
        )
    return ""


def agreement(subject: Subject, rng: np.random.Generator) -> str:
    """It agrees with the plain-list reference in every number type it promises.

    ``|f(x) - reference(x)|`` stays within :mod:`regard.testing.tolerances`, masked and
    unmasked, the reference reading the same rounded numbers. In half precision each row of
    weights, also one of thousands of nearly equal keys, sums to 1 as closely as weights
    normalised in float32 and rounded once.
    """
    if subject.oracle is None:
        raise NotApplicable("its Subject names no oracle")
    inputs = inputs_for(subject, rng).scaled(0.5)
    cases = {"unmasked": inputs}
    if subject.mask:
        cases["masked"] = inputs.with_mask(mask_for(subject, rng, inputs))
    for dtype in subject.dtypes:
        for when, case in cases.items():
            _require_agreement(subject, case, dtype, f"{dtype}, {when}")
        if dtype in _HALF and subject.weights != "never":
            sizes = sizes_for(subject)
            T_enc = _MANY_PAIRS if subject.self_attention else _MANY
            T_dec = T_enc if subject.self_attention else sizes.T_dec
            many = inputs_for(subject, rng, Sizes(sizes.batch, T_dec, T_enc)).scaled(0.01)
            weights = run(subject, many, dtype=dtype).weights
            assert weights is not None  # asked above
            _require_sums(weights, dtype, f"{dtype}, {T_enc} nearly equal keys")
    return "in " + ", ".join(subject.dtypes)


def _require_agreement(subject: Subject, inputs: Inputs, dtype: str, when: str) -> None:
    library = library_named(subject.library)
    with library.session():
        call = prepare(subject, inputs, dtype=dtype)
        outcome = outcome_of(subject, call())
        # What the subject was really given, rounded to its number type.
        given = [library.read(each) for each in call.arrays.values()]
    parameters = {name: each.tolist() for name, each in parameters_of(subject, dtype).items()}
    if subject.layout == "T batch d":
        given = [each.swapaxes(0, 1) for each in given]
    context, weights = _expected(subject, given, inputs.mask, parameters)
    if outcome.context is not None:
        close("context", outcome.context, context, RESULT[dtype], when)
    if outcome.weights is not None and not outcome.averaged:
        close("weights", outcome.weights, weights, RESULT[dtype], when)
        _require_sums(outcome.weights, dtype, when)


def _expected(
    subject: Subject, given: list[np.ndarray], mask: np.ndarray | None, parameters: Any
) -> tuple[np.ndarray, np.ndarray]:
    assert callable(subject.oracle)  # Subject turns names into functions
    query, key, value = given[0], given[min(1, len(given) - 1)], given[-1]
    contexts, weights = [], []
    for b in range(len(query)):
        context, own = subject.oracle(
            query[b].tolist(),
            key[b].tolist(),
            value[b].tolist(),
            mask=None if mask is None else mask[b].tolist(),
            **parameters,
        )
        contexts.append(context)
        weights.append(own)
    found = np.asarray(weights)
    return np.asarray(contexts), found[:, None] if found.ndim == 3 else found


def _require_sums(weights: np.ndarray, dtype: str, when: str) -> None:
    sums = weights.sum(axis=-1)
    close("row sum", sums, np.ones_like(sums), ROW_SUM[dtype], when)
