"""Chooses among the layouts with which a target runs, or finds where its crash comes from.

Among readings that run, the cheapest wins in which results have sensible axes and examples
stay apart. Where none runs, a crash is the author's only if the code runs when sizes that
have nothing to do with each other coincide, or if the author states every axis.
"""

import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from regard.check.contract import Contract, Returned
from regard.check.roles.behaviour import Runner, keeps_examples_apart, unmixed
from regard.check.roles.cast import Part
from regard.check.roles.known import Known
from regard.check.roles.reading import keeps_arrays
from regard.check.roles.results import Results, alignment, results
from regard.check.roles.solve import FATAL, Solver
from regard.check.roles.statements import shapes
from regard.check.roles.trial import Trial
from regard.check.sizes import SETS, Sizes
from regard.check.subject import Crash, Outcome
from regard.errors import RegardError

__all__ = ["Fit"]

# Sizes that coincide: what a crash needs in order not to happen.
_FEATURES = ("d_s", "d_h", "d_emb", "d_attn", "d_v", "d_k")
_COINCIDENCES: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("T_dec = T_enc", {"T_dec": "T_enc"}),
    ("all features have one size", dict.fromkeys(_FEATURES, "heads*d_head")),
    ("T_mem = T_dec", {"T_mem": "T_dec"}),
    ("kv_heads = heads", {"kv_heads": "heads"}),
    ("T = heads", dict.fromkeys(("T", "T_dec", "T_enc"), "heads")),
    ("batch = T", {"batch": "T_enc", "T": "T_enc", "T_dec": "T_enc"}),
    (
        "every size is the same",
        {
            **dict.fromkeys(_FEATURES, "heads*d_head"),
            "T": "batch",
            "T_dec": "batch",
            "T_enc": "batch",
        },
    ),
)
# A layout of a higher cost is so odd that its crash is no sign of a mistake; and one that the
# search ended near, for want of time, may have a likely rival that runs.
_FAR = 2.5
_NEXT = 1.0
_TIMES = ("T", "T_enc", "T_dec", "T_mem")
_LONGEST = 65  # a longer sequence of a fixed length would take too long
_SHAPES = re.compile(
    r"shape|size|dimension|axis|axes|broadcast|match|mismatch|multiplied|subscript|reshape|view|"
    r"overflow|expand|cat|divi",
    re.IGNORECASE,
)


def _is_of_shapes(crash: Crash) -> bool:
    """Whether a crash can be the author's mistake about axes, and no argument we made wrong."""
    known = crash.kind in ("RuntimeError", "ValueError", "IndexError", "AssertionError")
    return known and _SHAPES.search(crash.message) is not None


class Fit:
    """Finds axes for one target within some seconds of this thread's time."""

    def __init__(self, known: Known, *, seconds: float = 6.0) -> None:
        self.known = known
        self.deadline = time.thread_time() + seconds
        self.runs_when = ""  # the coincidence of sizes without which the target crashes
        self.farthest: Crash | None = None  # of the tries that failed
        self.cut = False  # whether time ended a search
        self.held: dict[str, int] = {}  # lengths that the code has fixed

    def fit(self) -> tuple[Trial | None, Results | None]:
        """The reading under which the target runs, or under which its crash is its own."""
        best, crashed = self._searched()
        held = self._held(crashed) if best is None else {}
        if held:
            free = self.known
            stated = replace(free.stated, sizes={**held, **free.stated.sizes})
            self.known = replace(free, stated=stated)
            best, _ = self._searched()
            self.held = held if best is not None else {}
            self.known = free if best is None else self.known
        if best is not None:
            return best
        last = max(crashed, key=lambda t: t.progress, default=None)
        if last is not None and isinstance(last.result, Crash):
            self.farthest = last.result
        found = self._crash(crashed)
        if found is not None and found.runs:
            rated = self.rate(found)
            return (rated[0], rated[1]) if rated is not None else (None, None)
        return found, (self._expected(found) if found is not None else None)

    def _searched(self) -> tuple[tuple[Trial, Results] | None, list[Trial]]:
        """The best of all readings that run, or those that do not."""
        crashed: list[Trial] = []
        for parts in self.known.optional:
            for join in self.known.joins:
                best, failed = self._search(parts, join)
                if best is not None:
                    return best, []
                crashed += failed
        return None, crashed

    def _held(self, crashed: list[Trial]) -> dict[str, int]:
        """A length that must be a number which no axis has, as tables of a fixed size ask."""
        for trial in sorted(crashed, key=lambda t: t.cost)[:3]:
            sizes = Sizes(trial.which, trial.contract.sizes)
            named = {n: sizes[n] for n in trial.contract.every_axis}
            numbers = [int(n) for n in re.findall(r"\d+", trial.message)]
            for token in ("T", "T_enc", "T_dec"):
                fresh = [n for n in numbers if 1 < n < _LONGEST and n not in named.values()]
                if token in named and named[token] in numbers and len(set(fresh)) == 1:
                    return {token: fresh[0], **_apart(fresh[0], named)}
        return {}

    def _search(
        self, parts: tuple[Part, ...], join: str
    ) -> tuple[tuple[Trial, Results] | None, list[Trial]]:
        solver = self._solver(parts, self.known.forms(parts), join, 2.5)
        good: list[tuple[float, int, Trial, Results]] = []
        failed: list[Trial] = []
        limit = 160 if join != "maybe" else 60
        for i, trial in enumerate(solver.search(limit, good, failed)):
            if good and (trial.cost > good[0][2].cost + 1.6 or len(good) >= 8):
                break
            if not trial.runs:
                failed.append(trial)
                if isinstance(trial.result, Crash) and trial.result.kind in FATAL:
                    break
                continue
            if trial.joined and join == "never":
                continue
            rated = self.rate(trial)
            if rated is not None:
                better, found, cost = rated
                good.append((cost, i, better, found))
                if cost < trial.cost + 0.01 and self._settled(better):
                    break
        self.deadline += solver.first
        self.cut |= solver.cut
        if not good:
            return None, failed
        good.sort(key=lambda g: g[:2])
        return (good[0][2], good[0][3]), failed

    def _settled(self, trial: Trial) -> bool:
        """Whether no other order of the axes needs a look: it is said, or there is none."""
        content = ("query", "key", "value", "self", "step", "second", "past", "other")
        roles = {p.name: p.role for p in self.known.cast}
        return all(a.said for n, a in trial.choice.axes.items() if roles.get(n) in content) or (
            "batch" not in " ".join(trial.contract.inputs.values())
        )

    def rate(self, trial: Trial) -> tuple[Trial, Results, float] | None:
        """The results of a running layout, and what speaks against it."""
        contract = trial.contract
        try:
            sizes = (Sizes(0, contract.sizes), Sizes(1, contract.sizes))
            runs = []
            for which in (0, 1):
                result = Runner(self.known.loaded, contract, which).run()
                if result is None:
                    return None
                runs.append(result)
            found = results(self.known.reading, contract, (runs[0], runs[1]), sizes)
            renamed = _turned(self._pooled(contract, found), found)
            if renamed is not contract:
                contract = renamed
                found = results(self.known.reading, contract, *self._again(contract))
            if not contract.returns:
                bare = replace(contract, returns=found.returns)
                found = replace(found, returns=unmixed(Runner(self.known.loaded, bare)))
            contract = replace(
                contract,
                returns=contract.returns or found.returns,
                weights=found.weights,
                sums_over=found.sums_over,
            )
            cost = trial.cost + found.odd
            said = all(a.said for a in trial.choice.axes.values() if "batch" in a.tokens)
            if not said:
                apart = keeps_examples_apart(Runner(self.known.loaded, contract))
                cost += 2.5 if apart is False else 0.0
            cost += self._vanishing(contract, trial) + self._lone(contract, trial)
        except (RegardError, ValueError, IndexError, KeyError):
            return None
        clean = replace(contract, returns=self.known.stated.returns, weights=None, sums_over=())
        return replace(trial, contract=clean), found, cost

    def _vanishing(self, contract: Contract, trial: Trial) -> float:
        """Cost of a time axis that the code squeezes away on purpose, with a fixed index."""
        if not re.search(
            r"\.squeeze\((dim=)?-?\d\)|\.squeeze_?\(axis=", self.known.reading.code
        ):
            return 0.0
        roles = {p.name: p.role for p in self.known.cast}
        for name, axes in trial.choice.axes.items():
            if axes.said or roles.get(name) not in ("query", "step", "ids", "self"):
                continue
            for token in set(contract.inputs[name].split()) & {"T", "T_dec"}:
                small = replace(contract, sizes={**contract.sizes, token: 1})
                one = Runner(self.known.loaded, small).run()
                full = Runner(self.known.loaded, contract).run()
                if one is None or full is None:
                    return 1.5 if one is None else 0.0
                ranks = [
                    (a.ndim, b.ndim)
                    for a, b in zip(one.outputs, full.outputs, strict=False)
                    if a is not None and b is not None
                ]
                if any(a != b for a, b in ranks):
                    return 1.5
        return 0.0

    def _lone(self, contract: Contract, trial: Trial) -> float:
        """Cost of a query of one step only, where rows of results have an axis for steps."""
        roles = {p.name: p.role for p in self.known.cast}
        asked = [a for n, a in trial.choice.axes.items() if roles.get(n) == "query"]
        alone = any(not a.said and not {"T_dec", "1"} & {*a.tokens} for a in asked)
        rows = [r.axes.split() for r in contract.returns if r.name != contract.weights]
        return 0.9 if alone and any(r[:2] == ["batch", "1"] for r in rows) else 0.0

    def _again(self, contract: Contract) -> tuple[tuple[Outcome, Outcome], tuple[Sizes, Sizes]]:
        sizes = (Sizes(0, contract.sizes), Sizes(1, contract.sizes))
        runs = [Runner(self.known.loaded, contract, which).run() for which in (0, 1)]
        if runs[0] is None or runs[1] is None:
            raise ValueError("the target runs only sometimes")
        return (runs[0], runs[1]), sizes

    def _pooled(self, contract: Contract, found: Results) -> Contract:
        """Call the only time axis T_enc where no result has a row for each position."""
        if "T" not in contract.every_axis or "T_enc" in contract.every_axis:
            return contract
        contexts = [r for r in found.returns if r.name != found.weights]
        rows = [r for r in contexts if "T" in r.axes.split()]
        doubled = any(r.axes.split().count("T") > 1 for r in found.returns)
        alone = found.weights and not contexts and not doubled
        if rows or doubled or not (contexts or alone):
            return contract
        inputs = {
            n: " ".join("T_enc" if t == "T" else t for t in a.split())
            for n, a in contract.inputs.items()
        }
        return replace(contract, inputs=inputs)

    def _crash(self, crashed: list[Trial]) -> Trial | None:
        """The reading under which a crash is the author's: it is stated, or runs by chance."""
        likely = [t for t in crashed if isinstance(t.result, Crash) and _is_of_shapes(t.result)]
        likely = [t for t in likely if t.cost <= _FAR or self._is_said(t)]
        ranked = sorted(likely, key=lambda t: (t.cost, -t.progress))[:10]
        mistaken = [t for t in ranked if self._is_authors(t, crashed)]
        for trial in ranked:
            parts = tuple(p for p in self.known.cast if p.name in trial.choice.axes)
            forms = {n: (f,) for n, f in trial.forms.items()}
            joins = "always" if "always" in self.known.joins else "never"
            solver = self._solver(parts, forms, joins, 1.0)
            for name, sizes in _COINCIDENCES:
                if trial not in mistaken and "d_h" not in sizes:
                    continue
                other = solver.attempt(trial.choice, sizes)
                if other.runs:
                    is_foreign = bool(getattr(trial.result, "package", ""))
                    forced = (
                        solver.force(trial.choice, whole=is_foreign) if "d_h" in sizes else None
                    )
                    if forced is not None:
                        return forced  # the sizes belong together; it is no mistake
                    if trial not in mistaken:
                        break
                    self.runs_when = name
                    return replace(other, result=trial.result)
        return next((t for t in mistaken if self._is_said(t)), None)

    def _is_authors(self, trial: Trial, crashed: list[Trial]) -> bool:
        """Whether a crash can be the author's, and not one of a layout that nobody means.

        What another package refuses, called with arguments of ours, says nothing of the
        author, nor does a less likely layout beside one that was refused so.
        """
        costs = [t.cost for t in crashed if getattr(t.result, "package", "")]
        last = max(t.cost for t in crashed) - _NEXT if self.cut else _FAR
        near = trial.cost < min([*costs, _FAR + 1.0]) and trial.cost <= last
        is_foreign = bool(getattr(trial.result, "package", ""))
        ours = is_foreign or keeps_arrays(self.known.reading)
        return not ours and (near or self._is_said(trial)) and not self._is_at_odds(trial)

    def _is_said(self, trial: Trial) -> bool:
        """Whether the author states the axes of everything that has content."""
        content = ("query", "key", "value", "self", "step", "second", "past")
        roles = {p.name: p.role for p in self.known.cast}
        axes = [a for n, a in trial.choice.axes.items() if roles[n] in content]
        return bool(axes) and all(a.said for a in axes)

    def _is_at_odds(self, trial: Trial) -> bool:
        """Whether one word of the author's would be a length here and something else there."""
        meant: dict[str, set[str]] = {}
        for shape in shapes(self.known.reading):
            axes = trial.choice.axes.get(shape.name)
            if not shape.firm or axes is None or len(axes.tokens) != len(shape.words):
                continue
            for word, token in zip(shape.words, axes.tokens, strict=True):
                meant.setdefault(word, set()).add("T" if token in _TIMES else token)
        return any(len(tokens) > 1 and "T" in tokens for tokens in meant.values())

    def _expected(self, trial: Trial) -> Results | None:
        """What a crashing target would return, read where its sizes coincide."""
        if not trial.sizes or set(trial.sizes) - {"T_dec", "T_mem", "kv_heads", "T"}:
            return None
        runs, sizes = [], []
        for which in (0, 1):
            plain = Sizes(which, trial.contract.sizes)
            same = {n: int(plain.value(e)) for n, e in trial.sizes.items()}
            contract = replace(trial.contract, sizes={**trial.contract.sizes, **same})
            runs.append(Runner(self.known.loaded, contract, which).run())
            sizes.append(Sizes(which, contract.sizes))
        if runs[0] is None or runs[1] is None:
            return None
        found = results(
            self.known.reading, trial.contract, (runs[0], runs[1]), (sizes[0], sizes[1])
        )
        returns = [_query_first(r) for r in found.returns]
        weights, over, how, sure = alignment(
            self.known.reading, trial.contract, returns, runs[0]
        )
        return Results(tuple(returns), weights, over, how, sure, found.odd)

    def _solver(
        self,
        parts: tuple[Part, ...],
        forms: Mapping[str, tuple[str, ...]],
        join: str,
        seconds: float,
    ) -> Solver:
        left = self.deadline + (1.0 if seconds <= 1.0 else 0.0) - time.thread_time()
        return Solver(
            self.known.loaded,
            self.known.reading,
            self.known.layouts(parts),
            forms=forms,
            base=self.known.base,
            join=join,
            seconds=min(seconds, max(0.05, left)),
        )


def _apart(length: int, names: Iterable[str]) -> dict[str, int]:
    """Other sizes for names that have the size of a fixed length at any set of sizes."""
    sets = [Sizes(which) for which in range(len(SETS))]
    return {
        name: next(s[name] for s in sets if s[name] != length)
        for name in names
        if len({s[name] for s in sets}) > 1 and any(s[name] == length for s in sets)
    }


def _turned(contract: Contract, found: Results) -> Contract:
    """Exchange queries and keys where contexts have a row for each key, none for a query.

    In bidirectional attention ``context`` may attend to ``query``: rows tell who asks.
    """
    contexts = [set(r.axes.split()) for r in found.returns if r.name != found.weights]
    asks = any("T_dec" in axes for axes in contexts)
    if asks or not any("T_enc" in axes for axes in contexts):
        return contract
    if not {"T_dec", "T_enc"} <= set(contract.every_axis):
        return contract
    table = {"T_dec": "T_enc", "T_enc": "T_dec"}
    inputs = {
        n: " ".join(table.get(t, t) for t in axes.split())
        for n, axes in contract.inputs.items()
    }
    return replace(contract, inputs=inputs)


def _query_first(returned: Returned) -> Returned:
    """Name the axes of a result where queries, keys or heads are equally many."""
    tokens = returned.axes.split()
    times = [i for i, t in enumerate(tokens) if t in ("T_dec", "T_enc")]
    rows = [i for i, t in enumerate(tokens) if t == "T"]
    if len(times) == 2:
        tokens[times[0]], tokens[times[1]] = "T_dec", "T_enc"
    elif len(times) == 1:
        has_features = any(t.startswith("d_") or "*d_" in t for t in tokens)
        tokens[times[0]] = "T_dec" if has_features else "T_enc"
    elif len(rows) == 3:
        tokens[rows[0]] = "heads"
    return Returned(returned.name, " ".join(tokens), returned.role)
