"""An audit as text for a terminal."""

import textwrap
from collections.abc import Iterator

import numpy as np

from regard.audit.selftest import SelfTest
from regard.audit.verdict import Audit, Gate, Table

__all__ = ["selftest_text", "text"]

_WIDTH = 92


def text(audit: Audit, *, details: bool = True) -> str:
    """Return the verdict, the claims, the gates and every table.

    Parameters
    ----------
    audit : Audit
    details : bool
        False: the verdict and the claims alone.
    """
    verdict = audit.verdict
    lines = [f"regard audit of {audit.subject}", ""]
    lines += textwrap.wrap(verdict.text, _WIDTH)
    lines += ["", "claims"]
    lines += [f"  {claim.level}  {claim.outcome:<10} {claim.text}" for claim in verdict.claims]
    if details:
        lines += ["", "gates"]
        lines += [line for gate in verdict.gates for line in _gate(gate)]
        for table in audit.tables:
            lines += ["", *_table(table)]
        if verdict.not_tested:
            lines += ["", "not tested"]
            lines += [f"  {name}: {why}" for name, why in verdict.not_tested]
    left_out = ", ".join(f"{count} {why}" for why, count in audit.left_out)
    lines += [
        "",
        f"n {audit.n}{f' ({left_out})' if left_out else ''}  seed {audit.seed}  data "
        f"{audit.data}  {audit.asked:,} inputs asked  {audit.seconds:.0f} s",
    ]
    return "\n".join(lines)


def selftest_text(found: SelfTest) -> str:
    """Return how the controls came out."""
    lines = [f"{'control':<34} accuracy  mass on planted  F     L2"]
    for control in (found.honest, found.deceived):
        l2 = {"passed": "granted", "failed": "refused"}.get(control.l2, control.l2)
        lines.append(
            f"{control.name:<34} {control.accuracy:8.1%}  {control.mass:15.1%}  "
            f"{control.share:4.2f}  {l2}"
        )
    told = "tells the two apart" if found.passed else "does NOT tell the two apart"
    lines.append(f"the audit {told} on this machine (seed {found.seed})")
    return "\n".join(lines)


def _gate(gate: Gate) -> Iterator[str]:
    more = "" if gate.more is None else f"; about {gate.more:,} more inputs would decide"
    yield f"  {gate.name:<18} {gate.outcome:<10} {gate.said}{more}"


def _table(table: Table) -> Iterator[str]:
    yield table.title + ("" if table.gates else "  (descriptive, no gate)")
    width = max((len(row.name) for row in table.rows), default=0)
    yield f"  {'':<{width}}   value [95 % interval]     random    best"
    for row in table.rows:
        random, best = (
            "-" if x is None or np.isnan(x) else f"{x:.3f}" for x in (row.random, row.best)
        )
        published = f"  published {row.published}" if row.published else ""
        yield f"  {row.name:<{width}}   {row.estimate!s:<22} {random:>8} {best:>7}{published}"
    yield f"  shows {table.shows}"
    yield f"  does not show {table.hides}"
