"""What a rule is: a relation that right attention keeps, and the smallest code that breaks it.

Everything that is said about a kind of finding is said here once: `regard explain`, the rule's
page, the help in SARIF and the tests all read these records. Nothing here runs a check.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["GROUPS", "Example", "Rule", "cross", "pair", "within"]

GROUPS: Mapping[str, str] = {
    "RG1": "shape",
    "RG2": "mask",
    "RG3": "softmax",
    "RG4": "heads",
    "RG5": "convention",
    "RG6": "numerics",
    "RG7": "gradient",
    "RG8": "batch",
    "RG9": "run",
}
"""The first three letters of a code, and what its group is about."""


@dataclass(frozen=True)
class Example:
    """A complete file that can be checked.

    ``contract`` is what its author would declare, without the target. ``show`` is code that,
    run after the file, prints ``prints``: the smallest case in figures.
    """

    source: str
    entry: str = "attend"
    contract: Mapping[str, Any] = field(default_factory=dict)
    show: str = ""
    prints: str = ""


@dataclass(frozen=True)
class Rule:
    """A kind of finding.

    ``code`` is never used again once it is given up; ``name`` is as permanent. ``what`` says
    what is wrong, ``equation`` is the relation that right code keeps, ``hides`` why the bug
    runs unnoticed, ``recipe`` how to mend it, ``not_a_bug`` when the same sight is intended.
    ``bad`` breaks this rule, and ``good`` breaks none.
    """

    code: str
    name: str
    level: Literal["error", "warning", "note"]
    title: str
    equation: str
    what: str
    hides: str
    recipe: str
    not_a_bug: str
    bad: Example
    good: Example
    references: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        """What the rule's group is about: ``"mask"`` for RG201."""
        return GROUPS[self.code[:3]]


def pair(
    source: str,
    *,
    wrong: str,
    right: str,
    show: str,
    prints: tuple[str, str],
    entry: str = "attend",
    contract: Mapping[str, Any] | None = None,
) -> tuple[Example, Example]:
    """Return the two examples of a rule: a file, and the same file mended.

    Parameters
    ----------
    source : str
        A file with ``...HERE...`` where the two differ.
    wrong, right : str
        What stands there in the bad and in the good file.
    show : str
        Code that prints the difference.
    prints : (str, str)
        What it prints after the bad file and after the good one.
    entry : str
        The function or class to check.
    contract : mapping, optional
        What the author would declare.

    Returns
    -------
    bad, good : Example
    """
    bad, good = (
        Example(
            source.replace("...HERE...", text).lstrip("\n"),
            entry,
            contract or {},
            show.strip(),
            printed,
        )
        for text, printed in zip((wrong, right), prints, strict=True)
    )
    return bad, good


def cross(*, keep: bool = False, **more: Any) -> dict[str, Any]:
    """Return the contract of ``attend(query, keys)``, with a mask if `keep`, and `more`."""
    inputs = {"query": "batch T_dec d_h", "keys": "batch T_enc d_h"}
    contract: dict[str, Any] = {
        "inputs": inputs | ({"keep": "batch T_enc"} if keep else {}),
        "returns": [
            {"name": "context", "axes": "batch T_dec d_h"},
            {"name": "weights", "axes": "batch T_dec T_enc"},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
        "score": "dot",
    }
    return contract | ({"kinds": {"keep": "keep"}} if keep else {}) | more


def within(inputs: Mapping[str, str], *, heads: bool = False, **more: Any) -> dict[str, Any]:
    """Return the contract of self-attention over `inputs`, per head if `heads`, and `more`."""
    weights = "batch heads T T" if heads else "batch T T"
    return {
        "inputs": dict(inputs),
        "returns": [
            {"name": "context", "axes": "batch T d_model"},
            {"name": "weights", "axes": weights},
        ],
        "weights": {"output": "weights", "sums_to_one_over": -1},
        "score": "scaled_dot",
        **more,
    }
