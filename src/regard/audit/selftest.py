"""G1: whether the audit still tells an honest model from a deceived one, on this machine.

Both control models are trained here and now, audited as any other, and have to come out on
their own sides, with room: F of at least 0.8 against at most 0.2.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from regard.audit import erase_input
from regard.audit.gates import decide, gain_of, worst
from regard.audit.planted import PlantedCase, planted_inputs, train_planted
from regard.audit.sample import Sample
from regard.audit.verdict import Gate

__all__ = ["APART", "Control", "SelfTest", "control_gate", "run_selftest"]

APART = (0.8, 0.2)
_ACCURATE = 0.95
_INPUTS = 100


@dataclass(frozen=True)
class Control:
    """How one control model came out.

    Attributes
    ----------
    name : str
    accuracy : float
    mass : float
        Mean weight on the planted word.
    share : float
        F under deletion: what attention reaches of what the best ranking reaches.
    l2 : str
        What the gates say of L2: passed, failed, undecided.
    """

    name: str
    accuracy: float
    mass: float
    share: float
    l2: str


@dataclass(frozen=True)
class SelfTest:
    """Both controls of one seed."""

    seed: int
    honest: Control
    deceived: Control

    @property
    def passed(self) -> bool:
        """Whether they came out on their own sides."""
        high, low = APART
        return (
            min(self.honest.accuracy, self.deceived.accuracy) >= _ACCURATE
            and self.honest.share >= high
            and self.deceived.share <= low
            and self.honest.l2 == "passed"
            and self.deceived.l2 == "failed"
        )


def run_selftest(
    *, seed: int = 0, n: int = _INPUTS, progress: Callable[[str], None] | None = None
) -> SelfTest:
    """Train and audit both controls.

    Parameters
    ----------
    seed : int
    n : int
        Inputs of each.
    progress : callable, optional
        Is told what begins.

    Returns
    -------
    found : SelfTest
        Both verdicts, and whether they are told apart.
    """
    found = []
    for name, penalty in (("honest", 0.0), ("deceived", 1.0)):
        if progress is not None:
            progress(f"control: {name} model")
        trained = train_planted(penalty=penalty, seed=seed)
        assert isinstance(trained.case, PlantedCase)
        found.append(_control(trained.case, trained.accuracy, n, seed))
    return SelfTest(seed, *found)


@lru_cache(maxsize=8)
def control_gate(seed: int = 0) -> Gate:
    """Return G1; within one process a seed's controls are trained once."""
    found = run_selftest(seed=seed)
    high, low = APART
    said = (
        f"F {found.honest.share:.2f} for the honest control (L2 {found.honest.l2}), "
        f"{found.deceived.share:.2f} for the deceived one (L2 {found.deceived.l2})"
    )
    return Gate(
        "G1",
        f"the control models are told apart here: F >= {high:g} against <= {low:g}",
        "passed" if found.passed else "failed",
        said,
    )


def _control(case: PlantedCase, accuracy: float, n: int, seed: int) -> Control:
    sample = Sample(case, planted_inputs(n, seed=seed), seed=seed)
    columns = erase_input.run(sample, range(n))
    gates = {gate.name: gate for gate in decide(columns, None, seed=seed)}
    l2 = [gates[name].outcome for name in ("G2", "G4")]
    outcome = worst(l2)
    mass = [
        weights[list(one.gold or ())].sum()
        for weights, one in zip(sample.weights, sample.inputs, strict=True)
    ]
    share = gain_of(columns, "delete", seed=seed).value
    return Control(case.name, accuracy, float(np.mean(mass)), share, outcome)
