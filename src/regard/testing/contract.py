"""The contract, asked of any attention: eleven clauses, one report."""

import importlib.metadata
from collections.abc import Collection

from regard.errors import ConventionError, explain
from regard.testing.battery.clause import Clause
from regard.testing.battery.masking import alone_or_padded, empty_rows, no_influence
from regard.testing.battery.numbers import agreement, slopes
from regard.testing.battery.purity import no_trace
from regard.testing.battery.refusals import refusals
from regard.testing.battery.symmetry import any_order, side_by_side
from regard.testing.battery.weights import distribution, looking
from regard.testing.libraries import library_named
from regard.testing.rehearsal import rehearse
from regard.testing.subject import Subject
from regard.testing.verdict import Report
from regard.version import __version__

__all__ = ["clauses", "contract"]

_CLAUSES = (
    Clause(1, "weights are a distribution", distribution),
    Clause(2, "what is forbidden has no influence", no_influence),
    Clause(3, "a row without keys is zero", empty_rows),
    Clause(4, "looking at weights changes nothing", looking),
    Clause(5, "calls leave no trace", no_trace),
    Clause(6, "a sentence alone equals itself in a batch", alone_or_padded),
    Clause(7, "keys may come in any order", any_order),
    Clause(8, "heads are attentions side by side", side_by_side),
    Clause(9, "gradients are slopes", slopes),
    Clause(10, "agrees with the plain-list reference", agreement),
    Clause(11, "mistakes are named, not computed", refusals),
)


def clauses() -> tuple[Clause, ...]:
    """Return the eleven clauses, for a test runner to go through.

    Examples
    --------
    A test file that holds an attention to the contract::

        @pytest.mark.parametrize("clause", regard.testing.clauses(), ids=str)
        def test_my_attention_keeps_the_contract(clause):
            clause.check(subject)

    What a test of it sees:

    >>> import regard as rg
    >>> from regard.testing import Subject, clauses
    >>> subject = Subject.of(rg.attend, score="additive")
    >>> for clause in clauses()[:3]:
    ...     print(clause.check(subject))
     1  held    weights are a distribution
     2  held    what is forbidden has no influence (forward only: numpy has no gradients)
     3  held    a row without keys is zero (forward only: numpy has no gradients)
    """
    return _CLAUSES


def contract(
    subject: Subject,
    *,
    clauses: Collection[int] | None = None,
    seed: int = 0,
    raising: bool = False,
) -> Report:
    """Hold an attention to the contract.

    Parameters
    ----------
    subject : Subject
        The attention, and what it means by its arguments.
    clauses : collection of int, optional
        Numbers of the clauses to ask, 1 to 11; all if left out.
    seed : int
        Draws all inputs; the same seed asks the same questions.
    raising : bool
        Whether to raise at once if a clause is broken. By default the report only says so, and
        :meth:`~regard.testing.verdict.Report.raise_if_broken` turns it into an error.

    Returns
    -------
    report : Report

    Raises
    ------
    ContractBroken
        A clause does not hold, and `raising`.
    ConventionError, ShapeError
        The subject cannot be called as it is described, or a clause has no such number.

    Examples
    --------
    An attention that hides padding behind a large negative number:

    >>> import numpy as np
    >>> from regard.testing import Subject, contract
    >>> def attention(query, key, value, mask=None):
    ...     scores = query @ np.swapaxes(key, -1, -2)
    ...     scores = scores if mask is None else np.where(mask, scores, -1e9)
    ...     e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    ...     weights = e / e.sum(axis=-1, keepdims=True)
    ...     return weights @ value, weights
    >>> mine = Subject(call=attention, d_s=5, d_h=5, d_v=7, weights="always", oracle="dot")
    >>> print(contract(mine, clauses=(1, 3)))
    attention (numpy, seed 0): 1 held, 1 broken
     1  held    weights are a distribution
     3  BROKEN  a row without keys is zero
                weights[0, 1, 0, 0], no key permitted (axis 2 is heads)
                  expected  0 exactly
                  got       0.09090909090909091
    """
    wanted = range(1, len(_CLAUSES) + 1) if clauses is None else clauses
    for number in wanted:
        if number not in range(1, len(_CLAUSES) + 1):
            raise ConventionError(
                explain("there is no such clause", expected="1 to 11", got=repr(number))
            )
    rehearse(subject)
    library = library_named(subject.library)
    versions = {"regard": __version__, "numpy": importlib.metadata.version("numpy")}
    if library.package:
        versions[library.package] = library.version
    report = Report(
        subject=subject.name,
        library=subject.library,
        seed=seed,
        verdicts=tuple(
            clause(subject, seed=seed) for clause in _CLAUSES if clause.number in wanted
        ),
        versions=versions,
    )
    return report.raise_if_broken() if raising else report
