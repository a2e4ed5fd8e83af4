"""A contract for code that declares none: read, tried, and every guess recorded."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from regard.check.contract import Contract
from regard.check.roles.behaviour import Runner, leak, order_matters, reads
from regard.check.roles.fit import Fit
from regard.check.roles.headed import headed
from regard.check.roles.known import Known
from regard.check.roles.polarity import Meaning
from regard.check.roles.reading import read
from regard.check.roles.results import Results
from regard.check.roles.sizing import given
from regard.check.roles.solve import FATAL
from regard.check.roles.stating import merged, refuse_unknown
from regard.check.roles.trial import Trial
from regard.check.roles.unusual import is_pattern
from regard.check.subject import Crash, Loaded
from regard.errors import RegardError

__all__ = ["Guess", "guess"]


@dataclass(frozen=True)
class Guess:
    """A contract, and what it stands on.

    ``confident``: everything that matters was stated by the author or left no choice.
    ``assumptions`` are sentences for the user, each with the flag that changes it;
    ``reasons`` say for each field of the contract how it was found, ``crash`` what was raised
    where nothing could be made.
    """

    contract: Contract
    confident: bool = False
    assumptions: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    worded: frozenset[str] = frozenset()  # fields that stand on the author's words alone
    crash: Crash | None = None  # without inputs: what the try that came farthest raised


def guess(
    loaded: Loaded, *, declared: Contract | None = None, flags: Mapping[str, Any] | None = None
) -> Guess:
    """Guess what is not declared.

    Parameters
    ----------
    loaded : Loaded
        The user's module and target.
    declared : Contract, optional
        What the author declares; a contract with axes for every argument that must be given
        replaces all guesses.
    flags : mapping, optional
        Single statements in the contract's form; they win over ``declared`` and guesses. Two
        more are no fields of a contract: ``mask`` (``keep`` or ``drop``, of every mask) and
        ``roles`` (the part of an argument by its name, as ``{"memory": "key"}``).

    Returns
    -------
    guess : Guess
        With a contract without inputs where no arguments could be made.

    Raises
    ------
    InputError
        If ``flags`` state something unknown.
    """
    flags = dict(flags or {})
    mask, roles = flags.pop("mask", ""), flags.pop("roles", {})
    refuse_unknown(mask, roles)
    stated = merged(declared, flags)
    try:
        reading = read(loaded.source, loaded.entry)
    except (SyntaxError, ValueError, RecursionError):
        return Guess(stated, False, ("the file cannot be read as Python",))
    needed = [p.name for p in reading.parameters if not p.has_default and not p.star]
    if declared is not None and stated.inputs and set(needed) <= set(stated.inputs):
        return Guess(stated, True)
    known = Known(loaded, reading, stated, frozenset(flags), str(mask or ""), roles)
    return _Guesser(known).guess()


class _Guesser:
    def __init__(self, known: Known) -> None:
        self.known = known
        self.guessed: dict[str, str] = {}
        self.assumptions: list[str] = []
        self.reasons: dict[str, str] = {}

    def guess(self) -> Guess:
        if self.known.reading.call is None or not self.known.cast:
            return self._none("no arguments that could be made")
        fit = Fit(self.known)
        trial, found = fit.fit()
        if trial is None:
            return self._none("no axes were found with which the code runs", fit.farthest)
        contract = trial.contract
        if found is not None and found.returns:
            contract = self._behaving(fit, trial, found)
        for token in [t for t in fit.held if t.startswith("T")]:
            self.assumptions.append(f"{token} = {fit.held[token]} (the code holds it fixed)")
        if fit.runs_when:
            self.reasons["runs only when"] = fit.runs_when
        self._say_intent(contract)
        self._say_axes(contract, trial)
        if any(n in ("temperature", "temper", "temp") for n in given(self.known.reading)):
            self._guess("score", "the temperature is about the root of the size of a key")
        if any(t.isdigit() and t != "1" for r in contract.returns for t in r.axes.split()):
            self._guess("init", "an axis of a result has a size that no name has", quiet=True)
        for name, kind in contract.kinds.items():
            if kind == "lengths" and is_pattern(name):
                self._guess(f"kinds.{name}", f"`{name}` counts the real keys", quiet=True)
        if self._is_composite():
            self._guess("inputs", "the target joins several attentions", quiet=True)
        self._doubt(contract)
        guessed = {k: v for k, v in self.guessed.items() if k not in self.known.declared}
        dtype = self.known.intent.fields.get("dtype", contract.dtype)
        if "dtype" in self.known.declared:
            dtype = self.known.stated.dtype
        contract = replace(contract, guessed=guessed, dtype=str(dtype))
        confident = trial.runs and not any(k.startswith(("inputs", "kinds")) for k in guessed)
        worded = {
            n for n, how in self.known.intent.stated.items() if how.startswith("its words")
        }
        worded = {n for n in worded - self.known.declared if getattr(contract, n)}
        return Guess(
            contract, confident, tuple(self.assumptions), self.reasons, frozenset(worded)
        )

    def _doubt(self, contract: Contract) -> None:
        """What nobody says, and findings may stand on."""
        said = self.known.declared | set(self.known.intent.stated)
        if not contract.positions and "positions" not in said:
            text = "no positions are meant; --positions relative, recurrent ... states some"
            self._guess("unplaced", text, quiet=True)
        if not self.known.stated.init and not self.known.stated.values:
            text = "a head has one softmax; --init NAME=heads states which argument counts them"
            self._guess("heads", text, quiet=True)
        if contract.all_masked is None:
            self._guess("all_masked", "a query without keys may occur", quiet=True)

    def _behaving(self, fit: Fit, trial: Trial, found: Results) -> Contract:
        """The contract with what runs tell of it: masks, results, who reads whom."""
        contract = self._polarity(self._returning(trial.contract, found))
        if contract.kinds != trial.contract.kinds:
            # What comes back has other numbers under another mask.
            bare = replace(
                contract, returns=self.known.stated.returns, weights=None, sums_over=()
            )
            again = fit.rate(replace(trial, contract=bare)) if trial.runs else None
            found = again[1] if again is not None else found
        contract = self._returning(contract, found)
        if found.weights and not found.sure:
            self._guess("weights", f"`{found.weights}` is the alignment ({found.how})")
        contract = headed(self.known, contract) if trial.runs else contract
        contract = self._pooling(contract)
        contract = self._pattern(contract)
        return self._order(contract)

    def _returning(self, contract: Contract, found: Results) -> Contract:
        """The contract with the results that were found, where none are declared."""
        if self.known.stated.returns:
            return contract
        return replace(
            contract, returns=found.returns, weights=found.weights, sums_over=found.sums_over
        )

    def _pooling(self, contract: Contract) -> Contract:
        """One learned query: the only content has keys, and no result a row for each."""
        alone = not {p.role for p in self.known.cast} & {
            "query",
            "key",
            "value",
            "second",
            "step",
        }
        pooled = alone and "T_enc" in contract.every_axis and "T" not in contract.every_axis
        if not pooled or "score" in self.known.declared:
            return contract
        self.reasons["score"] = "one learned query"
        return replace(contract, score="pooling")

    def _is_composite(self) -> bool:
        """Whether the target holds more than one attention, as a decoder layer does."""
        names = set(
            re.findall(r"self\.(\w*att\w*) = \w", self.known.reading.code, re.IGNORECASE)
        )
        inside = [
            n
            for n in names
            if re.search(rf"self\.{n} = [\w.]*(Attention|Attn|MHA)\b", self.known.reading.code)
        ]
        return len(inside) > 1 or len(re.findall(r"softmax\(", self.known.reading.code)) > 1

    # -- choosing by behaviour -----------------------------------------------------------

    def _polarity(self, contract: Contract) -> Contract:
        kinds = dict(contract.kinds)
        dropped: list[str] = []
        for name, meaning in self.known.meanings.items():
            kind = kinds.get(name)
            if kind is None or f"kinds.{name}" in self.known.declared:
                continue
            self.reasons[f"kinds.{name}"] = meaning.how or "tried"
            if kind in ("additive", "bias"):
                if not meaning.stated:
                    self._guess(f"kinds.{name}", f"`{name}` is added to the scores")
                continue
            if not meaning.stated:
                tried = self._tried(replace(contract, kinds=kinds), name, kind, meaning)
                if not tried and self._is_spare(contract, name):
                    dropped.append(name)
                    continue
                kinds[name] = tried or kind
            means = "may attend" if kinds[name].startswith("keep") else "may not attend"
            flip = "drop" if kinds[name].startswith("keep") else "keep"
            text = f"`{name}` is a mask, True = {means}"
            how = meaning.how if meaning.stated else "chosen by running"
            if meaning.stated:
                self.assumptions.append(f"{text} ({how}); --kind {name}={flip} changes it")
            else:
                self._guess(f"kinds.{name}", f"{text} ({how}); --kind {name}={flip} changes it")
        for name in dropped:
            del kinds[name]
            how = "nothing says what True means in it; --kind and --axes give it"
            self.assumptions.append(f"`{name}` is left out ({how})")
        inputs = {n: a for n, a in contract.inputs.items() if n not in dropped}
        return replace(contract, kinds=kinds, inputs=inputs)

    def _is_spare(self, contract: Contract, name: str) -> bool:
        """Whether a mask need not be given: a pattern over queries, beside a mask of keys."""
        optional = any(p.name == name and p.optional for p in self.known.cast)
        rows = contract.inputs[name].split()
        others = set(contract.kinds) - {name}
        return optional and len(rows) > 1 and "batch" not in rows and bool(others)

    def _tried(self, contract: Contract, name: str, kind: str, meaning: Meaning) -> str:
        """The polarity under which hidden keys have no influence; "" where no run tells."""
        form = kind.removeprefix("keep").removeprefix("drop")
        moved: dict[str, float] = {}
        first = meaning.polarity or "keep"
        for word in (first, "drop" if first == "keep" else "keep"):
            option = f"{word}{form}"
            if word == "drop" and form == "_uint8":
                continue
            try:
                runner = Runner(
                    self.known.loaded, replace(contract, kinds={**contract.kinds, name: option})
                )
                gap = leak(runner, name)
            except (RegardError, ValueError, IndexError, KeyError):
                gap = None
            if gap is not None:
                moved[option] = gap
        if not moved:
            return ""
        best = min(moved, key=lambda k: moved[k])
        usual = f"{first}{form}"
        return usual if moved.get(usual, 1.0) <= max(1e-5, moved[best]) else best

    def _pattern(self, contract: Contract) -> Contract:
        """Take the pattern of who reads whom from a run, where the author states none."""
        own = {"causal", "window"} & (self.known.declared | set(self.known.intent.stated))
        axes = set(contract.every_axis)
        row, key = ("T", "T") if "T" in axes else ("T_dec", "T_enc")
        if own or not {row, key} <= axes or contract.positions == "recurrent":
            return contract
        try:
            moved = reads(Runner(self.known.loaded, contract), row, key)
        except (RegardError, ValueError, IndexError, KeyError):
            moved = None
        if moved is None:
            if contract.causal is not None:
                self._guess("causal", f"causal ({self.known.intent.likely.get('causal')})")
            return contract
        if row != key:
            if self.known.intent.patterned:
                self._guess("causal", "a run decided who reads whom")
            return replace(contract, causal=_corner(moved))
        back, ahead = _reach(moved)
        if back is None or ahead is None:
            masked = any(k not in ("bias", "weights") for k in contract.kinds.values())
            if not masked or self.known.intent.patterned:
                self._guess("causal", "a pattern of its own decides who reads whom", quiet=True)
            return replace(contract, causal=None)
        window = back + 1 if back < moved.shape[0] - 1 else None
        if self.known.intent.patterned:
            self._guess("causal", "a run decided who reads whom")
            self._guess("window", "a run decided who reads whom", quiet=True)
        if ahead == 0:
            return replace(contract, causal="top_left", window=window)
        return replace(contract, causal=None, window=window if back == ahead else None)

    def _order(self, contract: Contract) -> Contract:
        """Drop positions that only a word suggests where the order of keys moves nothing."""
        if "positions" not in self.known.intent.likely or "positions" in self.known.declared:
            return contract
        try:
            matters = order_matters(Runner(self.known.loaded, contract))
        except (RegardError, ValueError, IndexError, KeyError):
            matters = None
        return replace(contract, positions=False) if matters is False else contract

    # -- what is said ----------------------------------------------------------------------

    def _guess(self, name: str, text: str, *, quiet: bool = False) -> None:
        self.guessed[name] = text
        if not quiet:
            self.assumptions.append(text)

    def _say_intent(self, contract: Contract) -> None:
        for name, how in self.known.intent.stated.items():
            self.reasons[name] = how
        for name, how in self.known.intent.likely.items():
            self.reasons[name] = how
            value = getattr(contract, name)
            if name != "causal" and value and value == self.known.intent.fields[name]:
                self._guess(name, f"{name} = {value} ({how}); --{name} changes it")
        for name in ("causal", "positions", "convention", "window"):
            if name in self.known.intent.stated and getattr(contract, name):
                value = getattr(contract, name)
                self.assumptions.append(f"{name} = {value} ({self.known.intent.stated[name]})")
        if (
            contract.score == self.known.intent.fields.get("score")
            and "score" in self.known.intent.stated
        ):
            self.assumptions.append(
                f"score = {contract.score} ({self.known.intent.stated['score']})"
            )

    def _say_axes(self, contract: Contract, trial: Trial) -> None:
        for name, axes in contract.inputs.items():
            choice = trial.choice.axes.get(name)
            said = choice.said if choice is not None else ""
            self.reasons[f"inputs.{name}"] = said or "tried"
            if axes and name not in contract.values:
                how = said or "tried"
                shown = ", ".join(axes.split())
                self.assumptions.append(f"`{name}` is ({shown}) ({how})")
        if trial.joined:
            self._guess(
                "inputs", "queries and keys lie on one axis T (the code runs no other way)"
            )

    def _none(self, why: str, crash: Crash | None = None) -> Guess:
        if crash is not None:
            where = f" (line {crash.line})" if crash.line else ""
            first = (crash.message.splitlines() or [""])[0]
            raised = f"{crash.kind}: {first}{where}"
            if crash.kind in FATAL:
                why = f"the code raised {raised}"
            else:
                why += f"; the try that came farthest raised {raised}"
        empty = replace(self.known.stated, inputs={})
        return Guess(empty, False, (why,), self.reasons, crash=crash)


def _reach(moved: np.ndarray) -> tuple[int | None, int | None]:
    """How far back and ahead every row reads, None where the rows do not agree."""
    n = moved.shape[0]
    at = np.arange(n)
    gap = at[:, None] - at[None]  # row minus position
    back = max((int(g) for g in gap[moved]), default=0)
    ahead = max((int(-g) for g in gap[moved]), default=0)
    expected = (gap <= back) & (-gap <= ahead)
    return (back, ahead) if back >= 0 and bool((moved == expected).all()) else (None, None)


def _corner(moved: np.ndarray) -> str | None:
    """Which corner a causal pattern of unlike axes starts from, None where there is none."""
    rows, keys = moved.shape
    q, k = np.arange(rows)[:, None], np.arange(keys)[None]
    if (moved == (k <= q)).all():
        return "top_left"
    return "bottom_right" if (moved == (k <= q + keys - rows)).all() else None
