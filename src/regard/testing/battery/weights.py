"""Clauses 1 and 4: what weights are, and that looking at them is free."""

import numpy as np

from regard.testing.battery.clause import NotApplicable, close, require, same
from regard.testing.inputs import inputs_for, mask_for, padding_for
from regard.testing.run import run
from regard.testing.subject import Subject
from regard.testing.tolerances import ROW_SUM

__all__ = ["distribution", "looking"]

_LARGE = 1e3


def distribution(subject: Subject, rng: np.random.Generator) -> str:
    """Weights are a distribution: ``a_ti >= 0`` and ``sum_i a_ti = 1``.

    Asked with scores of ordinary size and with scores so large that an exponential overflows
    unless the largest is subtracted; unmasked, masked, and with a single key permitted. Rows
    without any key are clause 3's. A score by position may leave a masked row without any too.
    """
    if subject.weights == "never":
        raise NotApplicable("it returns no weights")
    inputs = inputs_for(subject, rng)
    cases = {"unmasked": inputs, "inputs times 1000": inputs.scaled(_LARGE)}
    if subject.mask:
        masked = inputs.with_mask(mask_for(subject, rng, inputs))
        cases |= {"masked": masked, "masked, inputs times 1000": masked.scaled(_LARGE)}
        single = inputs.with_mask(padding_for(np.ones(len(inputs.query)), inputs))
        cases["one key permitted, inputs times 1000"] = single.scaled(_LARGE)
    for when, case in cases.items():
        weights = run(subject, case).weights
        assert weights is not None  # the rehearsal has seen them
        lowest = weights.min()
        require(lowest >= 0, f"the smallest weight, {when}", f"{lowest}", "at least 0")
        sums = weights.sum(axis=-1)
        if not subject.content_based and case.mask is not None:
            # A window of its own may leave a query none of the keys that the mask permits.
            sums = np.where(weights.any(axis=-1), sums, 1.0)
        close("row sum", sums, np.ones_like(sums), ROW_SUM[subject.dtypes[0]], when)
    return "" if subject.mask else "unmasked only: it takes no mask"


def looking(subject: Subject, rng: np.random.Generator) -> str:
    """Looking changes nothing: the context is the same, bit for bit, with and without weights.

    Asked unmasked, masked, and with a query that may attend nowhere. The weights are one matrix
    a head and never their average.
    """
    if subject.weights in ("never", "only"):
        raise NotApplicable(
            "it returns no weights" if subject.weights == "never" else "it returns no context"
        )
    inputs = inputs_for(subject, rng)
    outcome = run(subject, inputs)
    require(
        not outcome.averaged,
        "weights asked for",
        "one matrix for all heads",
        f"{subject.heads} matrices, one a head",
    )
    if subject.weights == "always":
        return "weights are always returned"
    cases = {}
    if subject.mask:
        mask = mask_for(subject, rng, inputs)
        empty = mask.copy()
        empty[0] = False
        # First, because this is where results differ most.
        cases["example 0 without keys"] = inputs.with_mask(empty)
        cases["masked"] = inputs.with_mask(mask)
    cases["unmasked"] = inputs
    for when, case in cases.items():
        looked, blind = run(subject, case), run(subject, case, need_weights=False)
        assert looked.context is not None  # the rehearsal has seen it
        require(blind.weights is None, f"need_weights=False, {when}", "weights", "None")
        assert blind.context is not None  # as above
        same("context", looked.context, blind.context, f"{when}, asked for weights")
    return ""
