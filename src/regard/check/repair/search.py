"""The search: candidates in order, each judged by every relation; survivors and fixes."""

import linecache
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.check.contract import Contract
from regard.check.finding import Edit, Fix
from regard.check.relations.base import Results, Verdict
from regard.check.repair.candidate import Span, as_edits
from regard.check.repair.families.base import generate
from regard.check.repair.hunt import Found, Hunt
from regard.check.repair.order import feeding, ordered
from regard.check.repair.program import Program
from regard.check.repair.proof import classes, fixes
from regard.check.subject import TookTooLong

__all__ = ["Search", "Survivor", "search"]


@dataclass(frozen=True)
class Survivor:
    """An edited file for which every relation holds.

    ``klass`` numbers the behaviours: survivors of one class give equal results everywhere
    they were compared. ``rank`` is how early the search came to it.
    """

    edits: tuple[Edit, ...]
    source: str
    kind: str
    lines: tuple[int, ...]
    klass: int
    results: Results
    rank: float = 0.0
    spans: tuple[Span, ...] = ()
    outputs: tuple[np.ndarray, ...] = ()


@dataclass(frozen=True)
class Search:
    """What a search found.

    ``complete`` is False where the time ran out before every candidate as simple as the
    survivors was tried; a proof then says nothing of rivals.
    """

    survivors: tuple[Survivor, ...] = ()
    fixes: tuple[Fix, ...] = ()
    tried: int = 0
    complete: bool = True
    of: int = 0
    seconds: float = 0.0


def search(
    source: str,
    path: str,
    entry: str,
    contract: Contract,
    failed: Sequence[Verdict],
    *,
    lines: Sequence[int] = (),
    trace: Any = None,
    seconds: float = 6.0,
    seed: int = 0,
) -> Search:
    """Look for edits after which every relation holds.

    Parameters
    ----------
    source, path, entry, contract
        As :func:`regard.check.relations.base.judge` takes them.
    failed : sequence of Verdict
        What failed for the text as it is.
    lines : sequence of int
        Suspect lines, most suspect first; those of the failures and of the trace are added.
    trace : Trace, optional
        The recording of the plain run, for suspect lines.
    seconds : float
        Processor time after which the search stops; twice that by the clock at most.
    seed : int

    Returns
    -------
    search : Search
        With no survivor where nothing was found; never an exception of the user's code.
    """
    started = time.monotonic()
    kept = linecache.cache.get(path)
    try:
        program = Program(source, path, entry, contract, seed=seed)
        every = generate(program)
        suspects = _suspects(failed, lines, trace)
        ranked = ordered(
            source,
            every,
            lines=suspects,
            feeding=feeding(program.tree, suspects),
            ran=program.observed.lines,
            rules=[v.rule for v in failed],
        )
        hunt = Hunt((source, path, entry), contract, failed, seed=seed, budget=seconds)
        hunt.run(ranked)
        found = _survivors(source, hunt.survivors())
        made = fixes(source, found, failed, hunt.outputs(source) if found else None)
    except (SyntaxError, TookTooLong):
        return Search(complete=False, seconds=time.monotonic() - started)
    finally:
        if kept is not None:
            linecache.cache[path] = kept
    return Search(
        tuple(found),
        made,
        hunt.tried,
        hunt.complete,
        len(ranked),
        time.monotonic() - started,
    )


def _suspects(failed: Sequence[Verdict], lines: Sequence[int], trace: Any) -> list[int]:
    found = [*lines]
    for verdict in failed:
        found += [line for line in verdict.lines if line not in found]
    for site in getattr(trace, "sites", ()) or ():
        span = getattr(site, "span", None)
        if span is not None and span.line not in found:
            found.append(span.line)
    return list(dict.fromkeys(line for line in found if line > 0))


def _survivors(source: str, found: Sequence[Found]) -> list[Survivor]:
    numbers = classes([each.outputs for each in found])
    made = []
    for each, number in zip(found, numbers, strict=True):
        spans = each.candidate.spans
        edits = as_edits(source, spans)
        lines = tuple(sorted({e.line for e in edits}))
        made.append(
            Survivor(
                edits,
                each.text,
                each.candidate.kind,
                lines,
                number,
                each.results,
                each.rank,
                spans,
                tuple(each.outputs),
            )
        )
    return made
