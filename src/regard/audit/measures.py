"""All tests of an audit, in the order in which they run: the gates' own first."""

from collections.abc import Sequence

from regard.audit import (
    adversary_exact,
    adversary_model,
    correlate,
    erase_input,
    erase_weights,
    flip_fraction,
    gold_mass,
    null_space,
    permute,
    retrain,
    rollout,
    uniform,
)
from regard.audit.measure import Measure
from regard.errors import InputError, explain

__all__ = ["MEASURES", "chosen"]

MEASURES: tuple[Measure, ...] = (
    erase_input.MEASURE,
    gold_mass.MEASURE,
    correlate.MEASURE,
    erase_weights.MEASURE,
    uniform.MEASURE,
    permute.MEASURE,
    flip_fraction.MEASURE,
    adversary_exact.MEASURE,
    null_space.MEASURE,
    rollout.MEASURE,
    retrain.MEASURE,
    adversary_model.MEASURE,
)


def chosen(names: Sequence[str] | None) -> list[Measure]:
    """Return the tests of these names, in their order; for None all that train nothing.

    Raises
    ------
    InputError
        There is no test of a name.
    """
    if names is None:
        return [measure for measure in MEASURES if not measure.trains]
    known = {measure.name: measure for measure in MEASURES}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InputError(
            explain(
                "audit(): `tests` names one that there is not",
                expected=", ".join(known),
                got=", ".join(unknown),
            )
        )
    wanted = {*names, MEASURES[0].name}
    return [measure for measure in MEASURES if measure.name in wanted]
