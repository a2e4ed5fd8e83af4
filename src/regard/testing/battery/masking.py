"""Clauses 2, 3 and 6: what a mask forbids is as if it were not there."""

from collections.abc import Mapping

import numpy as np

from regard.testing.battery.clause import Broken, NotApplicable, close, require, same, zero
from regard.testing.gradient import Loss, gradients
from regard.testing.inputs import Inputs, inputs_for, mask_for, padding_for
from regard.testing.libraries import library_named
from regard.testing.run import Outcome, parameters_of, run
from regard.testing.subject import Subject
from regard.testing.tolerances import RESULT

__all__ = ["alone_or_padded", "empty_rows", "no_influence"]

_POISON = (float("nan"), 1e30)


def no_influence(subject: Subject, rng: np.random.Generator) -> str:
    """What is forbidden has weight exactly 0 and no influence, forward or backward.

    ``m_ti = 0`` implies ``a_ti = 0``; NaN or 1e30 in keys and values that no query may attend
    leaves contexts, weights and all gradients as they were, bit for bit, and their own gradient
    is 0. A key that some query may attend does not influence those that may not.
    """
    _require_mask(subject)
    inputs = inputs_for(subject, rng)
    lengths = rng.permutation(np.arange(2, 2 + len(inputs.query)))
    mask = padding_for(lengths, inputs)
    padding = ~mask[:, 0]
    by_pair = subject.mask != "lengths" and subject.mask_axes == "T_dec T_enc"
    if subject.self_attention and by_pair:
        mask[padding] = False  # what is padding does not ask either
    inputs = inputs.with_mask(mask)
    rows = ~padding if subject.self_attention else np.ones(mask.shape[:2], dtype=bool)
    clean = run(subject, inputs)
    _require_zero_weights(clean, ~mask & rows[..., None], "padding")
    poisoned = {
        f"{poison} in padding": inputs.filled(padding, poison, queries=subject.self_attention)
        for poison in _POISON
    }
    leaks = {}
    for when, case in poisoned.items():
        try:
            _same_rows(run(subject, case), clean, rows, when)
        except Broken as leak:
            leaks[when] = leak.counterexample
    if leaks:
        first, *more = leaks.values()
        other = "1e30" if "nan" in first.where else "NaN"
        scope = f"{other} leaks too" if more else f"{other} does not leak"
        raise Broken(f"{first.where} ({scope})", first.got, first.expected)
    if by_pair:
        _require_pairwise(subject, rng, inputs)
    if not library_named(subject.library).differentiates:
        return _forward_only(subject)
    loss = Loss(rng, rows)
    expected = gradients(subject, inputs, loss)
    for name in ("query",) if subject.self_attention else _keys(expected):
        zero(f"gradient of {name}", expected[name], padding, "in padding")
    for when, case in poisoned.items():
        for name, got in gradients(subject, case, loss).items():
            same(f"gradient of {name}", got, expected[name], when)
    return ""


def empty_rows(subject: Subject, rng: np.random.Generator) -> str:
    """A query that may attend nowhere has zero weights, zero context and zero gradient.

    ``m_ti = 0`` for all i implies ``a_t = 0`` and ``c_t = 0`` (where there is an output
    projection, its bias); nothing of it flows back, and the results and gradients of all other
    queries are what they would be if it had keys.
    """
    _require_mask(subject)
    inputs = inputs_for(subject, rng)
    mask = mask_for(subject, rng, inputs)
    some = mask.copy()
    if subject.mask_axes == "T_dec T_enc" and subject.mask != "lengths":
        some[0, 1] = False
    else:
        some[0] = False
    empty = np.logical_not(some.any(axis=-1))
    others = np.logical_not(empty)
    full, given = inputs.with_mask(mask), inputs.with_mask(some)
    outcome = run(subject, given)
    when = "no key permitted"
    if outcome.weights is not None:
        zero("weights", np.moveaxis(outcome.weights, 1, 2), empty, f"{when} (axis 2 is heads)")
    if outcome.context is not None:
        if subject.empty is None:
            zero("context", outcome.context, empty, when)
        else:
            vector = np.asarray(subject.empty(**parameters_of(subject)))
            rows = outcome.context[empty]
            wanted = np.broadcast_to(vector, rows.shape)
            close("context", rows, wanted, RESULT[subject.dtypes[0]], f"{when} (rows)")
    tolerance = RESULT[subject.dtypes[0]]
    _same_rows(outcome, run(subject, full), others, "beside a row without keys", tolerance)
    if not library_named(subject.library).differentiates:
        return _forward_only(subject)
    for name, got in gradients(subject, given, Loss(rng, empty)).items():
        what = f"gradient of {name}"
        require(bool(np.isfinite(got).all()), f"{what} from such a row", "NaN or inf", "finite")
        if subject.empty is None or name in ("query", "key", "value"):
            zero(what, got, np.ones(got.shape[:1], dtype=bool), "from such a row")
    loss = Loss(rng, others)
    expected = gradients(subject, full, loss)
    for name, got in gradients(subject, given, loss).items():
        close(f"gradient of {name}", got, expected[name], tolerance, "from all other rows")
    return ""


def alone_or_padded(subject: Subject, rng: np.random.Generator) -> str:
    """A sentence alone equals the same sentence in a padded batch, to rounding."""
    inputs = inputs_for(subject, rng)
    batch, T_enc = len(inputs.query), inputs.T_enc
    if subject.mask is None:
        if "batch" not in subject.layout:
            raise NotApplicable("it takes one example and no mask")
        lengths = np.full(batch, T_enc)
        padded = run(subject, inputs)
    else:
        lengths = np.where(np.arange(batch) == 0, T_enc, rng.integers(2, T_enc - 1, size=batch))
        padded = run(subject, inputs.with_mask(padding_for(lengths, inputs)))
    tolerance = RESULT[subject.dtypes[0]]
    for b, length in enumerate(lengths):
        alone = run(subject, inputs.example(b, int(length), whole=not subject.self_attention))
        queries = slice(int(length)) if subject.self_attention else slice(None)
        when = f"example {b} with {length} of {T_enc} keys"
        if alone.context is not None and padded.context is not None:
            close("context", padded.context[b, queries], alone.context[0], tolerance, when)
        if alone.weights is not None and padded.weights is not None:
            own = padded.weights[b, :, queries, :length]
            close("weights", own, alone.weights[0], tolerance, when)
    return "" if subject.mask else "without padding: it takes no mask"


def _require_mask(subject: Subject) -> None:
    if subject.mask is None:
        raise NotApplicable("it takes no mask")


def _require_zero_weights(outcome: Outcome, forbidden: np.ndarray, when: str) -> None:
    if outcome.weights is not None:
        for head in range(outcome.weights.shape[1]):
            zero(f"weights of head {head} ", outcome.weights[:, head], forbidden, when)


def _require_pairwise(subject: Subject, rng: np.random.Generator, inputs: Inputs) -> None:
    mask = mask_for(subject, rng, inputs)
    before = run(subject, inputs.with_mask(mask))
    _require_zero_weights(before, ~mask, "forbidden to some queries")
    for j in range(1, inputs.T_enc - 1):
        untouched = ~mask[:, :, j]
        if subject.self_attention:
            untouched[:, j] = False
        if not untouched.any() or untouched.all():
            continue
        where = np.zeros(inputs.key.shape[:2], dtype=bool)
        where[:, j] = True
        changed = inputs.filled(where, 2.0, queries=subject.self_attention).with_mask(mask)
        when = f"key {j} changed, which this query may not attend"
        _same_rows(run(subject, changed), before, untouched, when, RESULT[subject.dtypes[0]])
        return


def _same_rows(
    got: Outcome,
    expected: Outcome,
    rows: np.ndarray,
    when: str,
    tolerance: float | None = None,
) -> None:
    """Compare results at some queries: within a tolerance, or their bits without one."""
    for what in ("context", "weights"):
        mine, theirs = getattr(got, what), getattr(expected, what)
        if mine is None or theirs is None:
            continue
        if what == "weights":
            mine, theirs = np.moveaxis(mine, 1, 2), np.moveaxis(theirs, 1, 2)
            what = "weights (axis 2 is heads)"  # noqa: PLW2901 - the same thing, turned
        keep = rows.reshape(rows.shape + (1,) * (mine.ndim - 2))
        mine, theirs = np.where(keep, mine, 0.0), np.where(keep, theirs, 0.0)
        if tolerance is None:
            same(what, mine, theirs, when)
        else:
            close(what, mine, theirs, tolerance, when)


def _keys(named: Mapping[str, np.ndarray]) -> list[str]:
    return [name for name in ("key", "value") if name in named]


def _forward_only(subject: Subject) -> str:
    return f"forward only: {subject.library} has no gradients"
