"""One call before all others: whether a subject is what it is said to be."""

import numpy as np

from regard.errors import ConventionError, RegardError, ShapeError, explain
from regard.testing.inputs import inputs_for
from regard.testing.run import run
from regard.testing.subject import Subject

__all__ = ["rehearse"]


def rehearse(subject: Subject) -> None:
    """Call a subject once, unmasked, and look at the shapes that come back.

    Raises
    ------
    ConventionError
        The call fails, or what it returns is not what the subject was said to return.
    ShapeError
        Context or weights have other axes than the subject was said to have.
    """
    inputs = inputs_for(subject, np.random.default_rng(0))
    try:
        outcome = run(subject, inputs)
    except RegardError:
        raise
    except Exception as error:
        raise ConventionError(
            explain(
                f"{subject.name} cannot be called as its Subject says",
                expected=f"{_call(subject)} to return",
                got=f"{type(error).__name__}: {error}",
                help="wrap it in a function of this signature and pass that as `call`",
            )
        ) from error
    promised = {"context": subject.weights != "only", "weights": subject.weights != "never"}
    for what, wanted in promised.items():
        if wanted != (getattr(outcome, what) is not None):
            raise ConventionError(
                explain(
                    f"{subject.name} does not return what its Subject says",
                    expected=f"weights={subject.weights!r}: {'' if wanted else 'no '}{what}",
                    got=f"no {what}" if wanted else f"{what} as well",
                )
            )
    batch, T_dec, T_enc = len(inputs.query), inputs.T_dec, inputs.T_enc
    heads = 1 if outcome.averaged else subject.heads or 1
    if outcome.context is not None:
        _require(subject, "context", outcome.context.shape[:-1], (batch, T_dec))
    if outcome.weights is not None:
        _require(subject, "weights", outcome.weights.shape, (batch, heads, T_dec, T_enc))


def _call(subject: Subject) -> str:
    arrays = ["module"] * (subject.module is not None) + ["query", "key", "value"][
        : 1 if subject.self_attention else 2 + (subject.d_v is not None)
    ]
    asked = ["need_weights=True"] * (subject.weights == "asked")
    parameters = [f"{name}=..." for name in subject.parameters]
    return f"call({', '.join(arrays + asked + parameters)}) on {subject.library}"


def _require(
    subject: Subject, what: str, got: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    if got != expected:
        axes = "batch, T_dec" if what == "context" else "batch, heads, T_dec, T_enc"
        rest = ", d" if what == "context" else ""
        raise ShapeError(
            explain(
                f"the {what} of {subject.name} have other axes than its Subject says",
                expected=f"{what} ({axes}{rest}), here {expected}",
                got=f"{got}",
                because=f"layout={subject.layout!r}, heads={subject.heads}",
            )
        )
