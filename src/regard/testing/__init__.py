"""The contract of attention as a test suite for anyone's attention.

>>> import regard as rg
>>> from regard.testing import Subject, contract
>>> report = contract(Subject.of(rg.attend, score="dot"))
>>> report.ok
True

Say what your own attention means by its arguments (:class:`Subject`), and either read a report
(:func:`contract`) or let a test runner go through the clauses (:func:`clauses`).
:func:`checks` makes tests of what ``regard check`` finds instead, and needs no description.
"""

from regard.testing.checks import checks
from regard.testing.contract import clauses, contract
from regard.testing.libraries import LIBRARIES
from regard.testing.subject import Subject
from regard.testing.verdict import ContractBroken, Counterexample, Report, Verdict

__all__ = [
    "LIBRARIES",
    "ContractBroken",
    "Counterexample",
    "Report",
    "Subject",
    "Verdict",
    "checks",
    "clauses",
    "contract",
]
