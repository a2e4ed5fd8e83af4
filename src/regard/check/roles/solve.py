"""Runs the target with proposed axes until it runs at sizes that are all different.

Nothing is assumed about what the code does. A crash shows how far the run got (operations of
the user's code executed) and which numbers did not meet; :mod:`regard.check.roles.moves`
says what to change, and a change is kept if the run gets farther.
"""

import itertools
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from regard.check.contract import Contract
from regard.check.roles.layouts import Choice, Layouts, choices
from regard.check.roles.moves import Moves
from regard.check.roles.reading import Reading
from regard.check.roles.sizing import Start, start, substitute
from regard.check.roles.trial import Trial, coinciding, counted
from regard.check.sizes import names_in
from regard.check.subject import Crash, Loaded
from regard.errors import RegardError

__all__ = ["FATAL", "Solver"]

FATAL = ("SystemExit", "KeyboardInterrupt", "RecursionError", "MemoryError", "Timeout")
"""Crashes that no other axes mend."""

_MORE = 1.0  # seconds for what is tried where nothing ran
_WALL = 4.0  # times as much time on the wall, where the target waits


class Solver:
    """Finds axes for one target.

    Parameters
    ----------
    loaded : Loaded
    reading : Reading
    layouts : Layouts
        What may be tried.
    forms : mapping of str to tuple of str
        Forms of every mask, the likeliest first.
    base : Contract
        What is known already: dtype, mode, values.
    join : bool
        Whether queries and keys may be put on one axis ``T``.
    seconds : float
        Time of this thread for everything, so that a busy machine finds what an idle one does.
    """

    def __init__(
        self,
        loaded: Loaded,
        reading: Reading,
        layouts: Layouts,
        *,
        forms: Mapping[str, tuple[str, ...]],
        base: Contract,
        join: str = "never",
        seconds: float = 4.0,
    ) -> None:
        self.loaded, self.reading, self.layouts = loaded, reading, layouts
        self.forms, self.base, self.join = forms, base, join
        self.moves = Moves(reading, layouts.parts, forms, join)
        self.deadline = time.thread_time() + seconds
        self.latest = time.monotonic() + _WALL * seconds
        self.runs = 0
        self.first = 0.0  # seconds of the first run, which loads what later ones find loaded
        self.cut = False  # whether time ended the search

    def trials(self, limit: int = 160) -> Iterator[Trial]:
        """Try one layout after another; each trial has its sizes bound as well as can be."""
        for i, choice in enumerate(choices(self.layouts)):
            if i >= limit or self._is_late():
                return
            yield self.attempt(choice)

    def search(
        self, limit: int, good: Sequence[object], failed: Sequence[Trial]
    ) -> Iterator[Trial]:
        """Try layouts in the order of their cost, then others if by then none is good.

        The caller adds to `good` and `failed` on the way.
        """
        yield from self.trials(limit)
        fatal = any(isinstance(t.result, Crash) and t.result.kind in FATAL for t in failed)
        if not good and failed and not fatal:
            yield from self._farther(failed)

    def _farther(self, failed: Sequence[Trial], limit: int = 60) -> Iterator[Trial]:
        """Try layouts that were not reached, those first whose axes took a run farthest.

        Where nothing ran, the likeliest layouts share a mistake, and most of what follows
        differs in arguments that no run came to.
        """
        self.deadline, self.latest = self.deadline + _MORE, self.latest + _WALL * _MORE
        reached: dict[tuple[str, tuple[str, ...]], int] = {}
        tried = set()
        for trial in failed:
            tried.add(_key(trial.choice))
            _note(reached, trial)
        left = [c for c in choices(self.layouts) if _key(c) not in tried]
        for _ in range(min(limit, len(left))):
            if self._is_late():
                return
            most = max(reached.values(), default=0)
            behind = [sum(reached.get(part, most) < most for part in _key(c)) for c in left]
            at = min(range(len(left)), key=lambda i: (behind[i], left[i].cost))
            trial = self.attempt(left.pop(at))
            _note(reached, trial)
            yield trial

    def _is_late(self) -> bool:
        late = time.thread_time() > self.deadline or time.monotonic() > self.latest
        self.cut |= late
        return late

    def attempt(self, choice: Choice, sizes: Mapping[str, str] | None = None) -> Trial:
        """Bind the variables of one layout, crash by crash, at two sets of sizes."""
        first = start(self.reading, self.layouts, choice)
        forms = {n: f[0] for n, f in self.forms.items()}
        names = dict(first.names)
        if self.join == "always":
            names |= {"T_dec": "T", "T_enc": "T"}
        elif self.base.causal == "bottom_right" and "T_mem" not in _words(choice):
            # The keys are all that were seen so far, the queries the last of them.
            names |= {"T_enc": "T_mem+T_dec"}
        names |= self._zipped(choice, names)
        best = self._bind(self._run(choice, first, names, forms, sizes or {}))
        if best.runs:
            other = self._run(choice, first, dict(best.names), dict(best.forms), sizes or {}, 1)
            if other.runs:
                return self._tied(best)
            # A size that could be divided at the first set need not be at the second.
            other = self._bind(other)
            again = self._run(choice, first, dict(other.names), dict(other.forms), sizes or {})
            return again if other.runs else other
        return best

    def force(self, choice: Choice, limit: int = 80, *, whole: bool = False) -> Trial | None:
        """Try every way to give the free sizes of the arguments the other sizes.

        Where this succeeds, a crash was no mistake of the author's: the sizes belong together.
        ``whole`` also tries one size for all, the constructor's included.
        """
        first = start(self.reading, self.layouts, choice)
        forms = {n: f[0] for n, f in self.forms.items()}
        claimed = {first.names[v] for v in first.firm if v.startswith("c_")}
        free = [
            v
            for v, n in first.names.items()
            if v[:2] != "c_" and v not in first.firm and n not in claimed
        ]
        if whole:
            same = {v: "heads*d_head" if n[:2] == "d_" else n for v, n in first.names.items()}
            same |= {v: "d_head" for v, n in first.names.items() if n == "d_head"}
            trial = self._run(choice, first, same, forms, {})
            if trial.runs and self._run(choice, first, same, forms, {}, 1).runs:
                return trial
        names = list(dict.fromkeys(first.names.values()))
        if not free or len(free) > 4:
            return None
        for i, chosen in enumerate(itertools.product(names, repeat=len(free))):
            if i >= limit or self._is_late():
                return None
            bound = {**first.names, **dict(zip(free, chosen, strict=True))}
            trial = self._run(choice, first, bound, forms, {})
            if trial.runs and self._run(choice, first, bound, forms, {}, 1).runs:
                return trial
        return None

    def _zipped(self, choice: Choice, names: Mapping[str, str]) -> dict[str, str]:
        """Plain lists stop at the shorter one and never complain: tie queries to keys."""
        roles = {p.role: p.name for p in self.layouts.parts if p.name in choice.axes}
        if self.loaded.library != "lists" or not {"query", "key"} <= set(roles):
            return {}
        if {"array", "vector"} & set(roles):
            return {}
        query, key = (choice.axes[roles[r]].tokens[-1] for r in ("query", "key"))
        return {query: names[key]} if key in names and query in names else {}

    def _tied(self, best: Trial) -> Trial:
        """Tie a constructor's size that shapes no parameter to the size that is compared.

        ``sqrt(size)`` runs with any number, but means the features of the queries.
        """
        asked = next((p.name for p in self.layouts.parts if p.role in ("query", "self")), None)
        if asked is None or asked not in best.choice.axes:
            return best
        wanted = substitute(best.choice.axes[asked].tokens[-1], best.names)
        for variable, name in best.names.items():
            option = variable[2:]
            if not variable.startswith("c_") or variable in best.start.firm or name == wanted:
                continue
            inside = rf"(nn\.\w+|Parameter|torch\.\w+)\([^()\n]*\b{option}\b"
            if re.search(inside, self.reading.code) or not wanted.startswith("d_"):
                continue
            names = {**best.names, variable: wanted}
            tied = self._run(best.choice, best.start, names, dict(best.forms), best.sizes)
            best = tied if tied.runs else best
        return best

    def _bind(self, best: Trial) -> Trial:
        seen = {best.state}
        for _ in range(14):
            if best.runs or self._is_late():
                break
            better, level = None, None
            for moved in self.moves.after(best):
                trial = self._run(best.choice, best.start, *moved, best.sizes, best.which)
                if trial.runs or trial.progress > (better or best).progress:
                    better = trial
                elif trial.progress == best.progress and trial.state not in seen:
                    # One operation may check several sizes, one after the other.
                    level = level or (trial if trial.message != best.message else None)
                seen.add(trial.state)
                if trial.runs:
                    break
            if better is None and level is None:
                break
            best = better or level or best
        return best

    def _run(  # noqa: PLR0917 - the parts of one attempt
        self,
        choice: Choice,
        first: Start,
        names: dict[str, str],
        forms: dict[str, str],
        fixed: Mapping[str, str],
        which: int = 0,
    ) -> Trial:
        self.runs += 1
        contract = self.contract(choice, first, names, forms)
        sizes = coinciding(which, contract, fixed)
        began = time.thread_time(), time.monotonic()
        try:
            result, progress = counted(self.loaded, contract, sizes)
        except (RegardError, ValueError, KeyError, TypeError, IndexError) as error:
            result, progress = Crash(type(error).__name__, str(error), 0, (), "build"), -1
        if self.runs == 1:
            self.first = time.thread_time() - began[0]
            self.deadline += self.first
            self.latest += time.monotonic() - began[1]
        joined = names.get("T_dec", "T_dec") == names.get("T_enc", "T_enc")
        return Trial(
            choice,
            first,
            names,
            forms,
            contract,
            result,
            progress,
            choice.cost,
            joined and self.join != "always",
            dict(fixed),
            which,
        )

    def contract(
        self, choice: Choice, first: Start, names: Mapping[str, str], forms: Mapping[str, str]
    ) -> Contract:
        """Write a choice and its bindings as a contract."""
        inputs, kinds, values = {}, {}, {}
        for part in self.layouts.parts:
            if part.name not in choice.axes:
                continue
            tokens = choice.axes[part.name].tokens
            inputs[part.name] = " ".join(substitute(t, names) for t in tokens)
            if part.role == "number":
                value = part.value
                values[part.name] = (
                    substitute(value, names) if isinstance(value, str) else value
                )
            elif part.role in ("mask", "bias"):
                kinds[part.name] = forms.get(part.name, "keep")
            elif part.role in ("lengths", "weights"):
                kinds[part.name] = part.role
            elif part.role == "ids":
                kinds[part.name] = forms.get(part.name, "token_ids")
            elif part.name in forms:
                kinds[part.name] = forms[part.name]
        init = {name: _written(value, names) for name, value in first.init.items()}
        return replace(
            self.base,
            inputs=inputs,
            init={**init, **self.base.init},
            kinds={**{n: k for n, k in kinds.items() if k}, **self.base.kinds},
            values={**values, **self.base.values},
        )


def _key(choice: Choice) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((name, axes.tokens) for name, axes in choice.axes.items())


def _note(reached: dict[tuple[str, tuple[str, ...]], int], trial: Trial) -> None:
    for part in _key(trial.choice):
        reached[part] = max(reached.get(part, -1), trial.progress)


def _words(choice: Choice) -> set[str]:
    return {n for a in choice.axes.values() for t in a.tokens for n in names_in(t)}


def _written(value: object, names: Mapping[str, str]) -> object:
    """Write variables as names in a value of the constructor."""
    if isinstance(value, Mapping):
        return {k: _written(v, names) for k, v in value.items()}
    return substitute(value, names) if isinstance(value, str) else value
