"""What a relation is, what it is given, and how all of them are judged.

A relation is a function of a :class:`Bench` (the user's code at one set of sizes) that
returns a :class:`Verdict`, or None where it does not apply. It knows numbers and named axes
and nothing of how a finding is shown.
"""

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from regard.check.contract import Contract
from regard.check.finding import Level, Measurement
from regard.check.probe import Probe
from regard.check.sizes import Sizes, names_in
from regard.check.subject import Crash, Instance, Loaded, Outcome, limit, load, quiet

__all__ = [
    "Bench",
    "Case",
    "Relation",
    "Results",
    "Verdict",
    "fails",
    "holds",
    "is_note",
    "judge",
    "near",
    "relation",
    "relations",
]


@dataclass(frozen=True)
class Verdict:
    """What one relation showed.

    ``rule`` is the code that this failure suggests; :mod:`regard.check.cause` has the last
    word. ``about`` names the argument, parameter, result or tensor in question, ``lines``
    are lines of the user's file that the failure itself points to, most suspect first.
    ``depends_on`` is the field of the contract (or ``"kinds.mask"``) without which the
    failure would mean nothing: where that field was guessed, the finding is no error.
    """

    relation: str
    state: Literal["holds", "fails"]
    rule: str = ""
    message: str = ""
    level: Level = "error"
    measured: tuple[Measurement, ...] = ()
    about: str = ""
    lines: tuple[int, ...] = ()
    depends_on: tuple[str, ...] = ()
    hidden: str = ""
    quote: str = ""
    equation: str = ""
    strict: bool = False  # asked of a repair only, never reported
    sizes: Mapping[str, int] = field(default_factory=dict)


def holds(name: str = "") -> Verdict:
    """A relation that holds; the name is filled in by the registry."""
    return Verdict(name, "holds")


def fails(rule: str, message: str, **more: Any) -> Verdict:
    """A relation that fails; the name is filled in by the registry."""
    return Verdict("", "fails", rule, message, **more)


def is_note(verdict: Verdict, contract: Contract) -> bool:
    """Whether a failure is a note: by its level, or because it stands on a guess."""
    return verdict.level == "note" or any(d in contract.guessed for d in verdict.depends_on)


@dataclass(frozen=True)
class Relation:
    """A registered relation."""

    name: str
    equation: str
    function: Callable[["Bench"], Verdict | None]
    strict: bool
    everywhere: bool  # at every set of sizes, or at the first only
    cost: int


relations: dict[str, Relation] = {}
_LENGTHS = frozenset({"batch", "T_enc", "T_dec", "T", "T_mem", "beam", "height", "width"})


def relation(
    name: str, equation: str, *, strict: bool = False, everywhere: bool = True, cost: int = 1
) -> Callable[[Callable[["Bench"], Verdict | None]], Callable[["Bench"], Verdict | None]]:
    """Register a relation under a permanent name, with its equation.

    ``strict`` relations are asked of repairs only: a habit of the field (heads in order)
    that correct code may break, but that a proven repair must keep.
    """

    def register(
        function: Callable[["Bench"], Verdict | None],
    ) -> Callable[["Bench"], Verdict | None]:
        relations[name] = Relation(name, equation, function, strict, everywhere, cost)
        return function

    return register


class Case:
    """A user's code and its contract; benches are made on demand and kept."""

    def __init__(self, loaded: Loaded, contract: Contract, *, seed: int = 0) -> None:
        self.loaded, self.contract, self.seed = loaded, contract, seed
        self._benches: dict[Any, Bench] = {}

    def bench(self, which: int = 0, **sizes: int) -> "Bench":
        """The bench at one of the size sets, some sizes replaced."""
        key = (which, tuple(sorted(sizes.items())))
        if key not in self._benches:
            base = Sizes(which, self.contract.sizes)
            if not sizes:
                self._benches[key] = Bench(self, base)
            else:
                # Other lengths and batches meet the same object, if it was not built for them.
                built = {n for v in self.contract.init.values() for n in names_in(str(v))}
                is_same = set(sizes) <= _LENGTHS and not set(sizes) & built
                parent = self.bench(which) if is_same else None
                self._benches[key] = Bench(self, base.with_(**sizes), parent)
        return self._benches[key]


class Bench:
    """The user's code at one set of sizes, with its inputs and its plain run.

    ``base`` is the outcome of the plain run (or the crash), ``trace`` its recording. Where
    ``contract.values`` lists several values, the plain run calls once with each, on the same
    object, and ``base`` is the last.
    """

    def __init__(self, case: Case, sizes: Sizes, parent: "Bench | None" = None) -> None:
        self.case, self.sizes, self._parent = case, sizes, parent
        self.contract = case.contract
        # Dropout would hide every other relation; those about it build their own instance.
        self._steady = self.contract.with_(mode="eval")
        self._base: Outcome | Crash | None = None
        self._trace: Any = None

    @functools.cached_property
    def probe(self) -> Probe:
        """The arguments of the plain run."""
        case = self.case
        return Probe(self.contract, self.sizes, seed=case.seed, choice=self.choices - 1)

    @functools.cached_property
    def instance(self) -> Instance:
        """The target at these sizes; that of the parent where only lengths differ."""
        if self._parent is not None:
            return self._parent.instance
        return Instance(self.case.loaded, self._steady, self.sizes)

    @property
    def choices(self) -> int:
        """How many calls on one object the declared values ask for."""
        lists = [v for v in self.contract.values.values() if isinstance(v, list)]
        return max((len(v) for v in lists), default=1)

    @property
    def base(self) -> Outcome | Crash:
        """The plain run."""
        if self._base is None:
            for choice in range(self.choices - 1):
                earlier = Probe(
                    self.contract, self.sizes, seed=self.case.seed, choice=choice
                ).args
                self.instance.call(earlier)
            self._base = self.instance.call(self.probe.args)
        return self._base

    @property
    def out(self) -> Outcome:
        """The plain run's outcome; only where it did not crash."""
        base = self.base
        assert isinstance(base, Outcome)  # relations run only then
        return base

    @property
    def trace(self) -> Any:
        """The recording of the plain run (:class:`regard.check.trace.Trace`), or None."""
        if self._trace is None:
            from regard.check.trace import record  # noqa: PLC0415 - heavy, and needs torch

            self._trace = record(self.instance, self.probe, self.sizes)
        return self._trace

    def fresh(self) -> Instance:
        """The target built anew, at the same sizes and with the same parameters."""
        return Instance(self.case.loaded, self._steady, self.sizes)

    def run(self, **changes: Any) -> Outcome | Crash:
        """Run with some arguments replaced."""
        return self.instance.call({**self.probe.args, **changes})

    def ok(self, **changes: Any) -> Outcome | None:
        """Run with some arguments replaced; None where it crashes."""
        result = self.run(**changes)
        return result if isinstance(result, Outcome) else None


@dataclass
class Results:
    """Verdicts of every relation that ran, and the outputs that tell behaviours apart."""

    verdicts: list[Verdict]
    outputs: list[np.ndarray] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)  # relations that raised, a defect of ours

    @property
    def failed(self) -> list[Verdict]:
        """Failures, strict ones left out."""
        return [v for v in self.verdicts if v.state == "fails" and not v.strict]

    @property
    def all_hold(self) -> bool:
        """Whether every relation holds, strict ones included."""
        held = all(v.state == "holds" for v in self.verdicts)
        return bool(self.verdicts) and held and not self.broken

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the relations that ran, each once, strict ones left out."""
        return tuple(dict.fromkeys(v.relation for v in self.verdicts if not v.strict))


def judge(
    source: str,
    path: str,
    entry: str,
    contract: Contract,
    *,
    seed: int = 0,
    first: Sequence[str] = (),
    stop: bool = False,
    strict: bool = False,
    sets: Sequence[int] = (0, 1),
    seconds: float = 10.0,
    only: Iterable[str] | None = None,
) -> Results:
    """Load a text and ask every relation of it.

    Parameters
    ----------
    first : sequence of str
        Relations to ask first: those that failed before, when a repair is judged.
    stop : bool
        Return at the first failure.
    strict : bool
        Ask the strict relations too.
    seconds : float
        Wall time after which the text counts as one that hangs.
    """
    with limit(seconds):
        loaded = load(source, path, entry)
        if isinstance(loaded, Crash):
            return Results([_crash("loads", loaded)])
        case = Case(loaded, contract, seed=seed)
        return ask(case, first=first, stop=stop, strict=strict, sets=sets, only=only)


def ask(
    case: Case,
    *,
    first: Sequence[str] = (),
    stop: bool = False,
    strict: bool = False,
    sets: Sequence[int] = (0, 1),
    only: Iterable[str] | None = None,
    skip: Collection[str] = (),
) -> Results:
    """Ask the relations of a case; see :func:`judge`. Those named in ``skip`` are left out."""
    import regard.check.relations.every  # noqa: F401, PLC0415 - registers them all

    chosen = set(only) if only is not None else None
    rank = {name: i for i, name in enumerate(first)}
    order = sorted(
        (
            r
            for r in relations.values()
            if (chosen is None or r.name in chosen) and r.name not in skip
        ),
        key=lambda r: (rank.get(r.name, len(rank)), r.cost),
    )
    results = Results([])
    for which in sets:
        bench = case.bench(which)
        base = bench.base
        if isinstance(base, Crash):
            results.verdicts.append(_crash("runs", base, bench))
            if stop:
                return results
            continue
        results.verdicts.append(Verdict("runs", "holds"))
        results.outputs += [o for o in base.outputs if o is not None]
        if case.contract.mode == "train":
            training = Instance(case.loaded, case.contract, bench.sizes).call(bench.probe.args)
            results.outputs += [o for o in getattr(training, "outputs", ()) if o is not None]
    if any(v.state == "fails" for v in results.verdicts):
        return results
    for each in order:
        if each.strict and not strict:
            continue
        for which in sets if each.everywhere else sets[:1]:
            bench = case.bench(which)
            try:
                with quiet():  # a NaN of the user's is measured, not warned of
                    verdict = each.function(bench)
            except Exception as error:  # ours: the user's exceptions come back as a Crash
                results.broken.append(f"{each.name}: {type(error).__name__}: {error}")
                break
            if verdict is None:
                continue
            shown = bench.sizes.shown(case.contract.every_axis)
            results.verdicts.append(
                replace(
                    verdict,
                    relation=each.name,
                    equation=each.equation,
                    strict=each.strict,
                    sizes=verdict.sizes or shown,
                )
            )
            if verdict.state == "fails":
                if stop:
                    return results
                break  # one counterexample a relation
    return results


def _crash(name: str, crash: Crash, bench: Bench | None = None) -> Verdict:
    sizes = bench.sizes.shown(bench.contract.every_axis) if bench is not None else {}
    return Verdict(
        name,
        "fails",
        "RG101",
        f"{crash.kind}: {crash.message.splitlines()[0][:160] if crash.message else ''}",
        lines=tuple(reversed(crash.lines)),
        quote=crash.message,
        equation="the code runs when every axis has a size of its own",
        sizes=sizes,
        about=crash.stage,
    )


def near(a: np.ndarray, b: np.ndarray, tolerance: float = 1e-4) -> bool:
    """Whether two arrays agree, NaN with NaN and infinity with its like."""
    if a.shape != b.shape:
        return False
    a, b = a.astype(np.float64), b.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        close = np.abs(a - b) <= tolerance * (1.0 + np.abs(b))
    return bool(np.all(same | close))
