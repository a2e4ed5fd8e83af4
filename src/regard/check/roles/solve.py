"""Runs the target with proposed axes until it runs at sizes that are all different.

Nothing is assumed about what the code does. A crash shows how far the run got (operations of
the user's code executed) and which numbers did not meet; a variable that has one of these
numbers is bound to the other, and the binding is kept if the run gets farther.
"""

import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

from regard.check.contract import Contract
from regard.check.probe import Probe
from regard.check.roles.cast import Part
from regard.check.roles.layouts import Choice, Layouts, choices
from regard.check.roles.reading import Reading
from regard.check.roles.sizing import Start, named, start, substitute
from regard.check.sizes import Sizes, names_in
from regard.check.subject import Crash, Instance, Loaded, Outcome
from regard.errors import RegardError

__all__ = ["Solver", "Trial"]

_TIMES = ("T_dec", "T_enc", "T_mem", "n_features", "kv_heads")
_FORM_TROUBLE = re.compile(
    r"bool|byte|dtype|boolean|uint8|\bint\b|float|subtract|bitwise|mask|long|numpy\.", re.IGNORECASE
)

_NO_SPLIT = re.compile(
    r"reshape|view size|invalid for input|divisib|equal division|even|multiple|unflatten|"
    r"split_with_sizes|into shape|chunk|assert",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Trial:
    """One run: the contract it was made with, what came out, and how far it got."""

    choice: Choice
    start: Start
    names: Mapping[str, str]
    forms: Mapping[str, str]
    contract: Contract
    result: Outcome | Crash
    progress: int
    cost: float = 0.0
    joined: bool = False  # queries and keys were put on one axis to make it run
    sizes: Mapping[str, str] = field(default_factory=dict)  # coincidences, name -> name
    which: int = 0

    @property
    def runs(self) -> bool:
        """Whether the target returned."""
        return isinstance(self.result, Outcome)


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
        Wall time for everything.
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
        self.deadline = time.monotonic() + seconds
        self.runs = 0

    def trials(self, limit: int = 160) -> Iterator[Trial]:
        """Try one layout after another; each trial has its sizes bound as well as can be."""
        for i, choice in enumerate(choices(self.layouts)):
            if i >= limit or time.monotonic() > self.deadline:
                return
            yield self.attempt(choice)

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

    def _zipped(self, choice: Choice, names: Mapping[str, str]) -> dict[str, str]:
        """Plain lists stop at the shorter one and never complain: queries are as wide as keys."""
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
        seen = {_state(best)}
        for _ in range(14):
            if best.runs or time.monotonic() > self.deadline:
                break
            better, level = None, None
            for moved in self._moves(best):
                trial = self._run(best.choice, best.start, *moved, best.sizes, best.which)
                if trial.runs or trial.progress > (better or best).progress:
                    better = trial
                elif trial.progress == best.progress and _state(trial) not in seen:
                    # One operation may check several sizes, one after the other.
                    level = level or (trial if _message(trial) != _message(best) else None)
                seen.add(_state(trial))
                if trial.runs:
                    break
            if better is None and level is None:
                break
            best = better or level or best
        return best

    def _run(
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
        sizes = _coinciding(which, contract, fixed)
        try:
            result, progress = _counted(self.loaded, contract, sizes)
        except (RegardError, ValueError, KeyError, TypeError, IndexError) as error:
            result, progress = Crash(type(error).__name__, str(error), 0, (), "build"), -1
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
                values[part.name] = substitute(value, names) if isinstance(value, str) else value
            elif part.role in ("mask", "bias"):
                kinds[part.name] = forms.get(part.name, "keep")
            elif part.role in ("lengths", "weights"):
                kinds[part.name] = part.role
            elif part.role == "ids":
                kinds[part.name] = forms.get(part.name, "token_ids")
            elif part.name in forms:
                kinds[part.name] = forms[part.name]
        init = {name: _named(value, names) for name, value in first.init.items()}
        return replace(
            self.base,
            inputs=inputs,
            init={**init, **self.base.init},
            kinds={**{n: k for n, k in kinds.items() if k}, **self.base.kinds},
            values={**values, **self.base.values},
        )

    def _moves(self, trial: Trial) -> Iterator[tuple[dict[str, str], dict[str, str]]]:
        """Other bindings and mask forms that the crash suggests."""
        crash = trial.result
        assert isinstance(crash, Crash)
        names, forms = dict(trial.names), dict(trial.forms)
        if _FORM_TROUBLE.search(f"{crash.kind} {crash.message}"):
            for mask, options in self.forms.items():
                for form in options:
                    if form != forms[mask]:
                        yield names, {**forms, mask: form}
        sizes = _coinciding(trial.which, trial.contract, trial.sizes)
        numbers = list(dict.fromkeys(int(n) for n in re.findall(r"\d+", crash.message)))[:12]
        seen = set()
        for variable, expression in self._bindings(trial, sizes, numbers):
            if (variable, expression) not in seen:
                seen.add((variable, expression))
                yield {**names, **_rebound(names, variable, expression)}, forms

    def _bindings(
        self, trial: Trial, sizes: Sizes, numbers: list[int]
    ) -> Iterator[tuple[str, str]]:
        used = _used(trial, self.layouts.parts)
        values = {v: int(sizes.value(trial.names.get(v, v))) for v in used}
        base = {n for v in used for n in names_in(trial.names.get(v, v))}
        base |= {"heads"} if "heads" in base or "d_head" in base else set()
        for variable, value in values.items():
            if not self._is_free(variable, trial):
                continue
            for number in numbers:
                if number == value or number < 2:
                    continue
                for wanted in _wanted(number, value, numbers, values, sizes["heads"]):
                    found = named(wanted, sizes, [*base, "heads", "d_head"])
                    if re.search(rf"\b{wanted}\b", self.reading.source) and wanted > 4:
                        found.append(str(wanted))  # a size that the file fixes
                    for expression in found:
                        if self._is_fit(variable, expression, trial):
                            yield variable, expression
        trouble = trial.result.message if isinstance(trial.result, Crash) else ""
        if _NO_SPLIT.search(trouble):
            for variable, value in values.items():
                is_size = variable.startswith(("f_", "c_", "w_"))
                own = trial.names.get(variable, "")
                if is_size and value % sizes["heads"] and re.fullmatch(r"d_\w+", own):
                    is_value = own == "d_v" and variable in trial.start.firm
                    yield variable, "heads*d_v" if is_value else "heads*d_head"

    def _is_free(self, variable: str, trial: Trial) -> bool:
        """Whether a variable may get another name at all."""
        if variable in ("T_mem", "n_features", "kv_heads"):
            return variable == "n_features"
        if variable in ("T_dec", "T_enc", "T"):
            return variable == "T_dec" and self.join == "maybe"
        own = trial.names.get(variable, "")
        return not any(n == own for v, n in trial.names.items() if v.startswith("c_"))

    def _is_fit(self, variable: str, expression: str, trial: Trial) -> bool:
        """Whether a new name does not contradict what the author's names say."""
        names = names_in(expression)
        is_time = [n in (*_TIMES, "T") for n in names]
        if variable in _TIMES:
            return all(is_time)
        if any(is_time) or {"batch", "height", "width"} & set(names):
            return False
        if not any(n.startswith("d_") for n in names):
            return expression.isdigit() and not variable.startswith("c_")
        own = trial.names.get(variable, "")
        if own in names and expression != own:
            return False
        own = trial.start.names.get(variable, "")
        claimed = {trial.start.names[v] for v in trial.start.firm if v.startswith("c_")}
        if own in claimed:
            return own in names
        if variable in trial.start.firm:
            others = {trial.start.names[v] for v in trial.start.firm if v != variable}
            return not others & set(names)
        return True


def _coinciding(which: int, contract: Contract, same: Mapping[str, str]) -> Sizes:
    """Sizes of a set in which some names have the size of another name."""
    plain = Sizes(which, contract.sizes)
    return Sizes(which, {**contract.sizes, **{n: int(plain.value(e)) for n, e in same.items()}})


def _words(choice: Choice) -> set[str]:
    return {n for a in choice.axes.values() for t in a.tokens for n in names_in(t)}


def _wanted(
    number: int, value: int, numbers: list[int], values: Mapping[str, int], heads: int
) -> Iterator[int]:
    """Sizes that a variable would need for a crash's number to become another one."""
    multiple = next((k for k in (2, 3, 4) if value * k in numbers), 0)
    if value in numbers:
        yield number
    elif multiple and number % multiple == 0:
        yield number // multiple
    elif value % heads == 0 and value // heads in numbers:
        yield number * heads
    else:
        # A sum with the variable in it can be what did not fit.
        sums = [n for n in numbers if n != number and n > value and n not in values.values()]
        if sums and number - (sums[0] - value) > 1:
            yield number - (sums[0] - value)


def _named(value: object, names: Mapping[str, str]) -> object:
    """Write variables as names in a value of the constructor."""
    if isinstance(value, Mapping):
        return {k: _named(v, names) for k, v in value.items()}
    return substitute(value, names) if isinstance(value, str) else value


def _texts(init: Mapping[str, object]) -> list[str]:
    inner = [w for v in init.values() if isinstance(v, Mapping) for w in v.values()]
    return [v for v in (*init.values(), *inner) if isinstance(v, str)]


def _state(trial: Trial) -> tuple[object, ...]:
    return (*sorted(trial.names.items()), *sorted(trial.forms.items()))


def _message(trial: Trial) -> str:
    return trial.result.message if isinstance(trial.result, Crash) else ""


def _used(trial: Trial, parts: tuple[Part, ...]) -> list[str]:
    texts = [t for a in trial.choice.axes.values() for t in a.tokens]
    texts += _texts(trial.start.init)
    found = [n for t in texts for n in names_in(t)]
    known = [n for n in dict.fromkeys(found) if n in trial.names or n in _TIMES or n == "T"]
    learned = {n for p in parts if p.role in ("array", "vector") for n in _of(p, trial)}
    # Learned arrays follow the data, data follow the constructor.
    return sorted(known, key=lambda n: (n not in learned, n.startswith("c_"), n in _TIMES))


def _of(part: Part, trial: Trial) -> list[str]:
    return [n for t in trial.choice.axes[part.name].tokens for n in names_in(t)]


def _rebound(names: Mapping[str, str], variable: str, expression: str) -> dict[str, str]:
    """Rename a variable and all that were found to have its size."""
    if variable == "T_dec" and expression == "T_enc":
        others = {v: "T" for v, n in names.items() if n == "T_enc"}
        return {**others, "T_dec": "T", "T_enc": "T"}
    own = names.get(variable, variable)
    if not re.fullmatch(r"\w+", own) or own in _TIMES:
        return {variable: expression}
    longer = expression if re.fullmatch(r"\w+", expression) else f"({expression})"
    return {
        v: expression if n == own else re.sub(rf"\b{own}\b", longer, n)
        for v, n in names.items()
        if re.search(rf"\b{own}\b", n)
    }


def _counted(loaded: Loaded, contract: Contract, sizes: Sizes) -> tuple[Outcome | Crash, int]:
    """Build and call the target, counting the operations of the user's file that ran."""
    count = 0

    def local(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if event == "opcode":
            count += 1
        return local

    def enter(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != loaded.path:
            return None
        frame.f_trace_opcodes = True
        return local

    probe = Probe(contract, sizes)
    before = sys.gettrace()
    sys.settrace(enter)
    try:
        instance = Instance(loaded, contract, sizes)
        result = instance.call(probe.args)
    finally:
        sys.settrace(before)
    return result, count
