"""The search: candidates in order, each judged by every relation; the survivors and their fixes."""

import ast
import linecache
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.check.contract import Contract
from regard.check.finding import Edit, Fix
from regard.check.relations.base import Results, Verdict, judge
from regard.check.repair.candidate import Candidate, as_edits, patched
from regard.check.repair.families.base import generate
from regard.check.repair.order import ordered
from regard.check.repair.program import Program
from regard.check.repair.proof import classes, fixes, keeps
from regard.check.subject import TookTooLong

__all__ = ["Search", "Survivor", "search"]

Judge = Callable[..., Results]


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
    spans: tuple[tuple[int, int, str], ...] = ()


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
    kinds: dict[str, int] = field(default_factory=dict)


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
        Wall time after which the search stops.
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
            ran=program.observed.lines,
            rules=[v.rule for v in failed],
        )
        hunt = _Hunt(source, path, entry, contract, failed, seed, started + seconds)
        hunt.run(ranked)
        found = hunt.survivors()
        made = fixes(source, found, failed, hunt.complete)
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


class _Hunt:
    """Judges candidates until the time is up or the survivors' rivals have all been tried."""

    # How much later in order a rival may be than the first survivor.
    reach = 0.8

    def __init__(
        self,
        source: str,
        path: str,
        entry: str,
        contract: Contract,
        failed: Sequence[Verdict],
        seed: int,
        deadline: float,
    ) -> None:
        self.source, self.path, self.entry, self.contract = source, path, entry, contract
        self.names = tuple(dict.fromkeys(v.relation for v in failed))
        self.seed, self.deadline = seed, deadline
        self.tried, self.complete = 0, True
        self.found: list[tuple[float, Candidate, str]] = []
        self._cheapest: list[str] = list(self.names)

    def run(self, ranked: Sequence[tuple[float, Candidate]]) -> None:
        """Try candidates in order."""
        limit = float("inf")
        for rank, candidate in ranked:
            if rank > limit:
                break
            if time.monotonic() > self.deadline:
                self.complete = False
                break
            text = patched(self.source, candidate.spans)
            if not keeps(self.source, text):
                continue
            self.tried += 1
            if self._holds(text, sets=(0, 1)):
                self.found.append((rank, candidate, text))
                limit = min(limit, rank + self.reach)

    def _holds(self, text: str, *, sets: Sequence[int]) -> bool:
        results = self._judge(text, sets=sets, seed=self.seed)
        if results is None:
            return False
        failing = next((v.relation for v in results.verdicts if v.state == "fails"), None)
        if failing is not None:
            # What rejected the last candidate most likely rejects the next one like it.
            if failing not in self._cheapest:
                self._cheapest.append(failing)
            return False
        return results.all_hold

    def _judge(self, text: str, *, sets: Sequence[int], seed: int) -> Results | None:
        try:
            return judge(
                text,
                self.path,
                self.entry,
                self.contract,
                seed=seed,
                first=self._cheapest,
                stop=True,
                strict=True,
                sets=sets,
                seconds=2.0,
            )
        except TookTooLong:
            return None
        except Exception:  # noqa: BLE001 - an edited text may break what a relation expects
            return None

    def survivors(self) -> list[Survivor]:
        """Those that also hold with other numbers and other sizes, by behaviour."""
        kept = []
        for rank, candidate, text in self.found:
            results = self._judge(text, sets=(0, 1, 2), seed=self.seed + 1)
            if results is not None and results.all_hold:
                kept.append((rank, candidate, text, results))
        numbers = classes([r.outputs for *_, r in kept])
        return [
            Survivor(
                as_edits(self.source, candidate.spans),
                text,
                candidate.kind,
                tuple(sorted({e.line for e in as_edits(self.source, candidate.spans)})),
                number,
                results,
                rank,
                candidate.spans,
            )
            for (rank, candidate, text, results), number in zip(kept, numbers, strict=True)
        ]


def parses(text: str) -> bool:
    """Whether a text is Python."""
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True
