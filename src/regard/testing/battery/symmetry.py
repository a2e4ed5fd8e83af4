"""Clauses 7 and 8: the order of keys, and the independence of heads."""

import numpy as np

from regard.testing.battery.clause import NotApplicable, close
from regard.testing.inputs import Inputs, inputs_for, mask_for
from regard.testing.run import Outcome, parameters_of, run
from regard.testing.subject import Subject
from regard.testing.tolerances import RESULT

__all__ = ["any_order", "side_by_side"]


def any_order(subject: Subject, rng: np.random.Generator) -> str:
    """Reordering keys and values together reorders the weights and leaves the context alone.

    ``a_t(P h, P v) = P a_t(h, v)`` and ``c_t(P h, P v) = c_t(h, v)`` for every permutation P.
    Holds for content-based scores. In self-attention the queries move along, and the rows too.
    """
    if not subject.content_based:
        raise NotApplicable("its weights depend on where a key stands")
    inputs = inputs_for(subject, rng)
    cases = {"unmasked": inputs}
    if subject.mask and subject.mask != "lengths":
        cases["masked"] = inputs.with_mask(mask_for(subject, rng, inputs))
    order = rng.permutation(inputs.T_enc)
    tolerance = RESULT[subject.dtypes[0]]
    for when, case in cases.items():
        before = run(subject, case)
        after = run(subject, case.reordered(order, queries=subject.self_attention))
        said = f"keys in the order {order.tolist()}, {when}"
        if before.context is not None and after.context is not None:
            moved = before.context[:, order] if subject.self_attention else before.context
            close("context", after.context, moved, tolerance, said)
        if before.weights is not None and after.weights is not None:
            moved = before.weights[..., order]
            moved = moved[..., order, :] if subject.self_attention else moved
            close("weights", after.weights, moved, tolerance, said)
    return ""


def side_by_side(subject: Subject, rng: np.random.Generator) -> str:
    """Heads are attentions side by side: each equals itself computed alone.

    ``a^n = attend(Q^n, K^n, V^n)`` for every head n, and the context is their contexts joined,
    ``[c^1; ...; c^H]``, behind the output projection if there is one. With one head that is the
    single-head attention.
    """
    if subject.heads is None:
        raise NotApplicable("it has no heads")
    if subject.alone is None:
        raise NotApplicable("its Subject does not say what a head is `alone`")
    for which in (subject, subject.one_head):
        if which is None:
            continue
        inputs = inputs_for(which, rng)
        heads = f"{which.heads} head{'s' * (which.heads != 1)}"
        _require_heads(which, inputs, f"{heads}, unmasked")
        if which.mask:
            masked = inputs.with_mask(mask_for(which, rng, inputs))
            _require_heads(which, masked, f"{heads}, masked")
    return "" if subject.one_head or subject.heads == 1 else "not asked with one head"


def _require_heads(subject: Subject, inputs: Inputs, when: str) -> None:
    assert subject.alone is not None  # asked above
    together = run(subject, inputs)
    if together.averaged:
        raise NotApplicable("its weights are averaged over the heads")
    apart: list[Outcome] = [
        run(subject.alone(head), inputs) for head in range(subject.heads or 1)
    ]
    tolerance = RESULT[subject.dtypes[0]]
    for head, one in enumerate(apart):
        if together.weights is not None and one.weights is not None:
            own = together.weights[:, head]
            close("weights", own, one.weights[:, 0], tolerance, f"head {head} alone, {when}")
    contexts = [one.context for one in apart if one.context is not None]
    if together.context is not None and contexts:
        joined = np.concatenate(contexts, axis=-1)
        if subject.join is not None:
            joined = np.asarray(subject.join(joined, **parameters_of(subject)))
        close("context", together.context, joined, tolerance, f"heads joined, {when}")
