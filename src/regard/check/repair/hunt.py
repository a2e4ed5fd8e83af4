"""Judging candidates in order until their rivals are tried or the time is up."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regard.check.contract import Contract
from regard.check.relations.base import Case, Results, Verdict, ask, is_note
from regard.check.repair.candidate import Candidate, patched
from regard.check.repair.proof import classes, keeps, plainness
from regard.check.subject import Crash, TookTooLong, limit, load

__all__ = ["Found", "Hunt"]


@dataclass(frozen=True)
class Found:
    """A candidate that holds: its rank, its text, the verdicts, and what it computes."""

    rank: float
    candidate: Candidate
    text: str
    results: Results
    outputs: list[np.ndarray]


class Hunt:
    """Judges candidates of one file.

    ``target`` is its text, its path and the name of what is checked.
    ``complete`` is False where the time ran out before every rival was tried that is about as
    simple as the first survivor.
    """

    # How much later in order a rival may be than the first survivor: all of these are tried
    # if there is time, and those within `core` are needed for a proof.
    reach, core = 0.8, 0.3
    # Seconds of one candidate, and how many times the budget may pass by the clock on the wall.
    seconds, patience = 2.0, 2.0

    def __init__(
        self,
        target: tuple[str, str, str],
        contract: Contract,
        failed: Sequence[Verdict],
        *,
        seed: int,
        budget: float,
    ) -> None:
        self.source, self.path, self.entry = target
        self.contract = contract
        self.seed, self.budget = seed, budget
        self.started, self._used = time.monotonic(), time.process_time()
        self.tried, self.complete = 0, True
        self._found: list[tuple[float, Candidate, str, list[np.ndarray]]] = []
        self._first = list(dict.fromkeys(v.relation for v in failed))
        # Gradients are compared only where the text cuts them, which a repair no longer does.
        self._must = {v.relation for v in failed if not v.rule.startswith("RG7")}
        self._must -= {"runs", "loads"}
        # What was only worth a note before asks nothing of a repair of something else.
        notes = {v.relation for v in failed if is_note(v, contract)}
        worse = {v.relation for v in failed if not is_note(v, contract)}
        self._notes = frozenset(notes - worse) if worse else frozenset()
        self._must -= self._notes
        self._kills: dict[str, int] = dict.fromkeys(self._first, 2)

    def run(self, ranked: Sequence[tuple[float, Candidate]]) -> None:
        """Try candidates in order."""
        first = float("inf")
        for rank, candidate in ranked:
            if rank > first + self.reach:
                break
            if self._late():
                self.complete = rank > first + self.core
                break
            self.tried += 1
            text = patched(self.source, candidate.spans)
            outputs = self._try(text, rank, candidate)
            if outputs is not None and keeps(self.source, text):
                self._found.append((rank, candidate, text, outputs))
                first = min(first, rank)

    def _late(self) -> bool:
        """Whether the time is up: the processor's, so that a busy machine finds as much."""
        elapsed = time.monotonic() - self.started
        used = time.process_time() - self._used
        return used > self.budget or elapsed > self.patience * self.budget

    def _try(self, text: str, rank: float, candidate: Candidate) -> list[np.ndarray] | None:
        """Outputs of a text for which every relation holds; None of one that falls."""
        try:
            with limit(self.seconds):
                case = self._case(text, self.seed)
                if case is None or self._is_twin(case, rank, candidate):
                    return None
                # Most fall at the first set of sizes; the second is for the few others.
                for sets in ((0,), (0, 1)):
                    results = self._ask(case, sets)
                    if not results.all_hold:
                        self._remember(results)
                        return None
                # What failed must hold now; that it no longer applies is no repair.
                asked = {v.relation for v in results.verdicts}
                return results.outputs if self._must <= asked else None
        except TookTooLong:
            return None
        except Exception:
            return None

    def _case(self, text: str, seed: int) -> Case | None:
        loaded = load(text, self.path, self.entry)
        return None if isinstance(loaded, Crash) else Case(loaded, self.contract, seed=seed)

    def _ask(self, case: Case, sets: Sequence[int], only: Any = None) -> Results:
        return ask(
            case,
            first=self._first,
            stop=True,
            strict=True,
            sets=sets,
            only=only,
            skip=self._notes,
        )

    def _is_twin(self, case: Case, rank: float, candidate: Candidate) -> bool:
        """Whether a text crashes, or does what a survivor does and is no plainer to read."""
        if not self._found:
            return False
        for sets in ((0,), (0, 1)):
            results = self._ask(case, sets, only=())
            if not results.all_hold:
                return True
            count = len(results.outputs)
            alike = [
                f for f in self._found if classes([f[3][:count], results.outputs]) == [0, 0]
            ]
            if not alike:
                return False
        mine = plainness(rank, candidate.spans)
        return any(plainness(r, c.spans) <= mine for r, c, *_ in alike)

    def _remember(self, results: Results) -> None:
        """Ask first what rejects most: what rejected one candidate rejects the next like it."""
        name = next((v.relation for v in results.verdicts if v.state == "fails"), "")
        if name not in ("", "runs", "loads"):
            self._kills[name] = self._kills.get(name, 0) + 1
            self._first = sorted(self._kills, key=lambda n: -self._kills[n])

    def survivors(self) -> list[Found]:
        """Those that also hold with other numbers and one more set of sizes.

        None of them stretches an axis silently where the text as it is does not.
        """
        kept = []
        stretched = self._stretched(self.source) if self._found else 0
        for rank, candidate, text, _ in self._found:
            if self._stretched(text) > stretched:
                continue
            # A third draw where the second fails: softmax can saturate for one of them.
            for seed in (self.seed + 1, self.seed + 2):
                results = self._again(text, seed)
                if results is not None and results.all_hold:
                    outputs = self.outputs(text)
                    kept.append(Found(rank, candidate, text, results, outputs or []))
                    break
        return kept

    def _stretched(self, text: str) -> int:
        """How many operations of a plain run broadcast although nothing asks for it."""
        try:
            with limit(2 * self.seconds):
                case = self._case(text, self.seed)
                trace = None if case is None else case.bench(0).trace
        except (TookTooLong, Exception):
            return 0
        return len(getattr(trace, "broadcasts", ()))

    def outputs(self, text: str) -> list[np.ndarray] | None:
        """What a text computes at every set of sizes, or None where it crashes."""
        results = self._again(text, self.seed + 1, only=())
        return results.outputs if results is not None and results.all_hold else None

    def _again(self, text: str, seed: int, only: Any = None) -> Results | None:
        try:
            with limit(2 * self.seconds):
                case = self._case(text, seed)
                return None if case is None else self._ask(case, (0, 1, 2), only=only)
        except (TookTooLong, Exception):
            return None
