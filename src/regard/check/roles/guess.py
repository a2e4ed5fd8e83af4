"""A contract for code that declares none: read, tried, and every guess recorded."""

import itertools
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from regard.check.contract import Contract, Returned
from regard.check.roles.behaviour import Runner, keeps_examples_apart, leak, sees_later
from regard.check.roles.cast import Part, cast
from regard.check.roles.intent import Intent, intent
from regard.check.roles.layouts import Layouts, layouts
from regard.check.roles.polarity import Meaning, forms_of, meaning_of
from regard.check.roles.reading import Reading, read
from regard.check.roles.results import Results, alignment, results
from regard.check.roles.sizing import given
from regard.check.roles.solve import Solver, Trial
from regard.check.sizes import Sizes
from regard.check.subject import Crash, Loaded, Outcome
from regard.errors import RegardError

__all__ = ["Guess", "guess"]

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
        {**dict.fromkeys(_FEATURES, "heads*d_head"), "T": "batch", "T_dec": "batch", "T_enc": "batch"},
    ),
)


_PLAIN_KEY = re.compile(r"^(k|K|key|keys|ks)$")
_JOINS = {
    "never": ("never",),
    "last": ("never", "maybe"),
    "maybe": ("never", "maybe"),
    "always": ("always", "never"),
}


@dataclass(frozen=True)
class Guess:
    """A contract, and what it stands on.

    ``confident``: everything that matters was stated by the author or left no choice.
    ``assumptions`` are sentences for the user, each with the flag that changes it;
    ``reasons`` say for each field of the contract how it was found.
    """

    contract: Contract
    confident: bool = False
    assumptions: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)


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
        Single statements in the contract's form; they win over ``declared`` and guesses.

    Returns
    -------
    guess : Guess
        With a contract without inputs where no arguments could be made.

    Raises
    ------
    InputError
        If ``flags`` state something unknown.
    """
    stated = _merged(declared, flags)
    try:
        reading = read(loaded.source, loaded.entry)
    except (SyntaxError, ValueError, RecursionError):
        return Guess(stated, False, ("the file cannot be read as Python",))
    needed = [p.name for p in reading.parameters if not p.has_default and not p.star]
    if declared is not None and stated.inputs and set(needed) <= set(stated.inputs):
        return Guess(stated, True)
    return _Guesser(loaded, reading, stated, dict(flags or {})).guess()


_SHAPES = re.compile(
    r"shape|size|dimension|axis|axes|broadcast|match|mismatch|multiplied|subscript|reshape|view|"
    r"overflow|expand|cat|divi",
    re.IGNORECASE,
)


def _is_of_shapes(crash: Crash) -> bool:
    """Whether a crash can be the author's mistake about axes, and no argument we made wrong."""
    known = crash.kind in ("RuntimeError", "ValueError", "IndexError", "AssertionError")
    return known and _SHAPES.search(crash.message) is not None


class _Guesser:
    def __init__(
        self, loaded: Loaded, reading: Reading, stated: Contract, flags: dict[str, Any]
    ) -> None:
        self.loaded, self.reading, self.stated, self.flags = loaded, reading, stated, flags
        self.cast = self._cast()
        self.intent: Intent = intent(reading, self.cast)
        self.meanings: dict[str, Meaning] = {
            p.name: meaning_of(p.name, reading) for p in self.cast if p.role in ("mask", "bias")
        }
        self.deadline = time.monotonic() + 6.0
        self.guessed: dict[str, str] = {}
        self.assumptions: list[str] = []
        self.reasons: dict[str, str] = {}

    def guess(self) -> Guess:
        if self.reading.call is None or not self.cast:
            return self._none("no arguments that could be made")
        trial, found = self._best()
        if trial is not None and found is None:
            found = self._expected(trial)
        if trial is None:
            return self._none("no axes were found with which the code runs")
        contract = trial.contract
        if found is not None and found.returns:
            contract = replace(
                contract,
                returns=contract.returns or found.returns,
                weights=found.weights if not self.stated.returns else contract.weights,
                sums_over=found.sums_over if not self.stated.returns else contract.sums_over,
            )
            if found.weights and not found.sure:
                self._guess("weights", f"`{found.weights}` is the alignment ({found.how})")
            contract = self._pooling(contract)
            contract = self._polarity(contract, trial)
            contract = self._pattern(contract)
        self._say_intent(contract)
        self._say_axes(contract, trial)
        if any(n in ("temperature", "temper", "temp") for n in given(self.reading)):
            self._guess("score", "the temperature is about the root of the size of a key")
        if self._is_composite():
            self._guess("inputs", "the target joins several attentions", quiet=True)
        if contract.all_masked is None:
            self._guess("all_masked", "a query without keys may occur", quiet=True)
        guessed = {k: v for k, v in self.guessed.items() if k not in self._declared_fields()}
        dtype = self.intent.fields.get("dtype", contract.dtype)
        if "dtype" in self._declared_fields():
            dtype = self.stated.dtype
        contract = replace(contract, guessed=guessed, dtype=str(dtype))
        confident = trial.runs and not any(k.startswith(("inputs", "kinds")) for k in guessed)
        return Guess(contract, confident, tuple(self.assumptions), self.reasons)

    # -- what is known before anything runs ----------------------------------------

    def _cast(self) -> tuple[Part, ...]:
        parts = cast(self.reading)
        known = {p.name for p in parts}
        for parameter in self.reading.parameters:
            if parameter.name in self.stated.inputs and parameter.name not in known:
                parts = (*parts, Part(parameter.name, "other"))
        return parts

    def _layouts(self, parts: tuple[Part, ...]) -> Layouts:
        from regard.check.roles.layouts import Axes  # noqa: PLC0415 - beside its one use

        found = layouts(self.reading, parts)
        axes = dict(found.axes)
        for name, text in self.stated.inputs.items():
            if name in axes:
                axes[name] = (Axes(tuple(text.split()), 0.0, "declared"),)
        return replace(found, axes=axes)

    def _base(self) -> Contract:
        fields = {k: v for k, v in self.intent.fields.items() if k not in self._declared_fields()}
        fields["dtype"] = "float32"  # set at the end: what half precision breaks is a finding
        base = replace(self.stated, inputs={}, **fields)  # type: ignore[arg-type]
        scale = given(self.reading).get("scale")
        if isinstance(scale, float) and base.scale is None:
            return replace(base, scale=str(scale))
        return base

    def _declared_fields(self) -> set[str]:
        plain = Contract()
        names = ("score", "scale", "causal", "window", "positions", "convention", "mode")
        more = ("dtype", "layer", "padding", "all_masked", "activation", "weights", "returns")
        found = {n for n in (*names, *more) if getattr(self.stated, n) != getattr(plain, n)}
        found |= {k for k in self.flags if k != "kinds"}
        found |= {f"kinds.{n}" for n in self.stated.kinds}
        found |= {f"inputs.{n}" for n in self.stated.inputs}
        return found

    def _join(self) -> str:
        roles = {p.role for p in self.cast}
        if self.intent.causal == "top_left" and not roles & {"past", "second", "step"}:
            stated = "causal" in self.intent.stated or self.intent.is_self
            return "always" if stated else "maybe"
        if self.intent.is_self and "query" in roles:
            return "maybe"
        cross = any(p.role == "key" and not _PLAIN_KEY.match(p.name) for p in self.cast)
        return "never" if cross or "past" in roles else "last"

    # -- trying ----------------------------------------------------------------------

    def _best(self) -> tuple[Trial | None, Results | None]:
        crashed: list[Trial] = []
        for parts in self._optional():
            for join in _JOINS[self._join()]:
                best, failed = self._search(parts, join)
                if best is not None:
                    return best
                crashed += failed
        found = self._crash(crashed)
        return (found, None) if found is not None else (None, None)

    def _optional(self) -> list[tuple[Part, ...]]:
        """The arguments to give: all, then without those that have a default."""
        every = self.cast
        needed = tuple(p for p in every if not p.optional or p.name in self.stated.inputs)
        sets = [every]
        masks = tuple(p for p in every if not p.optional or p.role in ("mask", "lengths"))
        for other in (masks, needed):
            if other and other not in sets:
                sets.append(other)
        return sets

    def _search(
        self, parts: tuple[Part, ...], join: str
    ) -> tuple[tuple[Trial, Results] | None, list[Trial]]:
        forms = {
            p.name: forms_of(p.name, self.meanings[p.name], self.reading, lists=False)
            for p in parts
            if p.name in self.meanings
        }
        forms |= self._content_forms(parts)
        forms |= {n: (k,) for n, k in self.stated.kinds.items() if n in {p.name for p in parts}}
        solver = Solver(
            self.loaded,
            self.reading,
            self._layouts(parts),
            forms=forms,
            base=self._base(),
            join="maybe" if join == "last" else join,
            seconds=min(2.5, max(0.05, self.deadline - time.monotonic())),
        )
        good: list[tuple[float, int, Trial, Results]] = []
        failed: list[Trial] = []
        limit = 160 if join != "maybe" else 60
        for i, trial in enumerate(solver.trials(limit)):
            if good and (trial.cost > good[0][2].cost + 1.6 or len(good) >= 8):
                break
            if not trial.runs:
                failed.append(trial)
                continue
            if trial.joined and join == "never":
                continue
            rated = self._rate(trial)
            if rated is not None:
                trial, found, cost = rated
                good.append((cost, i, trial, found))
                if cost < trial.cost + 0.01 and self._settled(trial):
                    break
        if not good:
            return None, failed
        good.sort(key=lambda g: g[:2])
        return (good[0][2], good[0][3]), failed

    def _content_forms(self, parts: tuple[Part, ...]) -> dict[str, tuple[str, ...]]:
        forms: dict[str, tuple[str, ...]] = {}
        words, code = self.reading.words, self.reading.code
        for part in parts:
            if part.role == "ids":
                zero = re.search(r"\b0 is (the )?pad|padding_idx", f"{words} {code}")
                tested = re.search(rf"\b{part.name} (!=|==|>) ", code) or zero
                forms[part.name] = ("token_ids_pad0",) if zero and tested else ("token_ids",)
            elif part.role in ("self", "key", "value") and re.search(
                r"zeros? (rows?|vectors?)[^.]*padd|rows of zeros are padding", words
            ):
                forms[part.name] = ("zero_padded",)
            elif part.role in ("query", "other") and re.search(
                rf"\b(h|hidden|\w+), ?(c|cell|\w+) = {part.name}\b(?!\.)", code
            ):
                forms[part.name] = ("state_tuple", "")
        return forms

    def _settled(self, trial: Trial) -> bool:
        """Whether no other order of the axes needs a look: it is said, or there is none."""
        content = ("query", "key", "value", "self", "step", "second", "past", "other")
        roles = {p.name: p.role for p in self.cast}
        return all(a.said for n, a in trial.choice.axes.items() if roles.get(n) in content) or (
            "batch" not in " ".join(trial.contract.inputs.values())
        )

    def _rate(self, trial: Trial) -> tuple[Trial, Results, float] | None:
        """The results of a running layout, and what speaks against it."""
        contract = trial.contract
        try:
            sizes = (Sizes(0, contract.sizes), Sizes(1, contract.sizes))
            runs = []
            for which in (0, 1):
                result = Runner(self.loaded, contract, which).run()
                if result is None:
                    return None
                runs.append(result)
            found = results(self.reading, contract, (runs[0], runs[1]), sizes)
            renamed = self._pooled(contract, found)
            if renamed is not contract:
                contract = renamed
                found = results(self.reading, contract, *self._again(contract))
            contract = replace(
                contract, returns=contract.returns or found.returns, weights=found.weights,
                sums_over=found.sums_over,
            )
            cost = trial.cost + found.odd
            said = all(a.said for a in trial.choice.axes.values() if "batch" in a.tokens)
            if not said:
                apart = keeps_examples_apart(Runner(self.loaded, contract))
                cost += 2.5 if apart is False else 0.0
            cost += self._vanishing(contract, trial)
        except (RegardError, ValueError, IndexError, KeyError):
            return None
        clean = replace(contract, returns=self.stated.returns, weights=None, sums_over=())
        return replace(trial, contract=clean), found, cost

    def _vanishing(self, contract: Contract, trial: Trial) -> float:
        """Cost of a time axis that the code squeezes away on purpose, with a fixed index."""
        if not re.search(r"\.squeeze\((dim=)?-?\d\)|\.squeeze_?\(axis=", self.reading.code):
            return 0.0
        roles = {p.name: p.role for p in self.cast}
        for name, axes in trial.choice.axes.items():
            if axes.said or roles.get(name) not in ("query", "step", "ids", "self"):
                continue
            for token in set(contract.inputs[name].split()) & {"T", "T_dec"}:
                small = replace(contract, sizes={**contract.sizes, token: 1})
                one = Runner(self.loaded, small).run()
                full = Runner(self.loaded, contract).run()
                if one is None or full is None:
                    return 1.5 if one is None else 0.0
                ranks = [(a.ndim, b.ndim) for a, b in zip(one.outputs, full.outputs, strict=False) if a is not None and b is not None]
                if any(a != b for a, b in ranks):
                    return 1.5
        return 0.0

    def _again(
        self, contract: Contract
    ) -> tuple[tuple[Outcome, Outcome], tuple[Sizes, Sizes]]:
        sizes = (Sizes(0, contract.sizes), Sizes(1, contract.sizes))
        runs = [Runner(self.loaded, contract, which).run() for which in (0, 1)]
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
        inputs = {n: " ".join("T_enc" if t == "T" else t for t in a.split()) for n, a in contract.inputs.items()}
        return replace(contract, inputs=inputs)

    def _crash(self, crashed: list[Trial]) -> Trial | None:
        """The reading under which a crash is the author's: stated, or one that runs by chance."""
        shapes = [t for t in crashed if isinstance(t.result, Crash) and _is_of_shapes(t.result)]
        ranked = sorted(shapes, key=lambda t: (t.cost, -t.progress))[:10]
        for trial in ranked:
            solver = Solver(
                self.loaded,
                self.reading,
                self._layouts(tuple(p for p in self.cast if p.name in trial.choice.axes)),
                forms={n: (f,) for n, f in trial.forms.items()},
                base=self._base(),
                join=self._join() if self._join() == "always" else "never",
                seconds=min(1.0, max(0.05, self.deadline + 1.0 - time.monotonic())),
            )
            for name, sizes in _COINCIDENCES:
                other = solver.attempt(trial.choice, sizes)
                if other.runs:
                    self.reasons["runs only when"] = name
                    return replace(other, result=trial.result)
        content = ("query", "key", "value", "self", "step", "second", "past")
        roles = {p.name: p.role for p in self.cast}
        for trial in ranked:
            axes = {n: a for n, a in trial.choice.axes.items() if roles[n] in content}
            if axes and all(a.said for a in axes.values()):
                return trial
        return None

    def _pooling(self, contract: Contract) -> Contract:
        """One learned query: the only content has keys, and no result a row for each."""
        alone = not {p.role for p in self.cast} & {"query", "key", "value", "second", "step"}
        pooled = alone and "T_enc" in contract.every_axis and "T" not in contract.every_axis
        if not pooled or "score" in self._declared_fields():
            return contract
        self.reasons["score"] = "one learned query"
        return replace(contract, score="pooling")

    def _expected(self, trial: Trial) -> Results | None:
        """What a crashing target would return, read where its sizes coincide."""
        if not trial.sizes or set(trial.sizes) - {"T_dec", "T_mem", "kv_heads", "T"}:
            return None
        runs, sizes = [], []
        for which in (0, 1):
            plain = Sizes(which, trial.contract.sizes)
            same = {n: int(plain.value(e)) for n, e in trial.sizes.items()}
            contract = replace(trial.contract, sizes={**trial.contract.sizes, **same})
            runs.append(Runner(self.loaded, contract, which).run())
            sizes.append(Sizes(which, contract.sizes))
        if runs[0] is None or runs[1] is None:
            return None
        found = results(self.reading, trial.contract, (runs[0], runs[1]), (sizes[0], sizes[1]))
        returns = [self._query_first(r) for r in found.returns]
        weights, over, how, sure = alignment(self.reading, trial.contract, returns, runs[0])
        return Results(tuple(returns), weights, over, how, sure, found.odd)

    def _query_first(self, returned: Returned) -> Returned:
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

    def _is_composite(self) -> bool:
        """Whether the target holds more than one attention, as a decoder layer does."""
        names = set(re.findall(r"self\.(\w*att\w*) = \w", self.reading.code, re.IGNORECASE))
        inside = [n for n in names if re.search(rf"self\.{n} = [\w.]*(Attention|Attn|MHA)\b", self.reading.code)]
        return len(inside) > 1

    # -- choosing by behaviour -----------------------------------------------------------

    def _polarity(self, contract: Contract, trial: Trial) -> Contract:
        kinds = dict(contract.kinds)
        for name, meaning in self.meanings.items():
            kind = kinds.get(name)
            if kind is None or name in self.stated.kinds:
                continue
            self.reasons[f"kinds.{name}"] = meaning.how or "tried"
            if kind in ("additive", "bias"):
                if not meaning.stated:
                    self._guess(f"kinds.{name}", f"`{name}` is added to the scores")
                continue
            if not meaning.stated:
                kinds[name] = self._tried(replace(contract, kinds=kinds), name, kind, meaning)
            means = "may attend" if kinds[name].startswith("keep") else "may not attend"
            flip = "drop" if kinds[name].startswith("keep") else "keep"
            text = f"`{name}` is a mask, True = {means}"
            how = meaning.how if meaning.stated else "chosen by running"
            if meaning.stated:
                self.assumptions.append(f"{text} ({how}); --kind {name}={flip} changes it")
            else:
                self._guess(f"kinds.{name}", f"{text} ({how}); --kind {name}={flip} changes it")
        return replace(contract, kinds=kinds)

    def _tried(self, contract: Contract, name: str, kind: str, meaning: Meaning) -> str:
        """The polarity under which hidden keys have no influence."""
        form = kind.removeprefix("keep").removeprefix("drop")
        moved: dict[str, float] = {}
        first = meaning.polarity or "keep"
        for word in (first, "drop" if first == "keep" else "keep"):
            option = f"{word}{form}"
            if word == "drop" and form == "_uint8":
                continue
            try:
                runner = Runner(self.loaded, replace(contract, kinds={**contract.kinds, name: option}))
                gap = leak(runner, name)
            except (RegardError, ValueError, IndexError, KeyError):
                gap = None
            if gap is not None:
                moved[option] = gap
        if not moved:
            return kind
        best = min(moved, key=lambda k: moved[k])
        usual = f"{first}{form}"
        return usual if moved.get(usual, 1.0) <= max(1e-5, moved[best]) else best

    def _pattern(self, contract: Contract) -> Contract:
        """Keep a causal pattern that only the code suggests where the run bears it out."""
        if contract.causal is None or "causal" in self.intent.stated:
            return contract
        if "causal" in self._declared_fields():
            return contract
        try:
            moved = sees_later(Runner(self.loaded, contract))
        except (RegardError, ValueError, IndexError, KeyError):
            moved = None
        if moved is None:
            self._guess("causal", f"causal ({self.intent.likely.get('causal', 'the code')})")
            return contract
        n = moved.shape[0]
        later = [(i, j) for i, j in itertools.product(range(n), repeat=2) if j > i]
        if any(moved[i, j] for i, j in later):
            return replace(contract, causal=None)
        return contract

    # -- what is said ----------------------------------------------------------------------

    def _guess(self, name: str, text: str, *, quiet: bool = False) -> None:
        self.guessed[name] = text
        if not quiet:
            self.assumptions.append(text)

    def _say_intent(self, contract: Contract) -> None:
        for name, how in self.intent.stated.items():
            self.reasons[name] = how
        for name, how in self.intent.likely.items():
            self.reasons[name] = how
            value = getattr(contract, name)
            if name != "causal" and value and value == self.intent.fields[name]:
                self._guess(name, f"{name} = {value} ({how}); --{name} changes it")
        for name in ("causal", "positions", "convention", "window"):
            if name in self.intent.stated and getattr(contract, name):
                value = getattr(contract, name)
                self.assumptions.append(f"{name} = {value} ({self.intent.stated[name]})")
        if contract.score == self.intent.fields.get("score") and "score" in self.intent.stated:
            self.assumptions.append(f"score = {contract.score} ({self.intent.stated['score']})")

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
            self._guess("inputs", "queries and keys lie on one axis T (the code runs no other way)")

    def _none(self, why: str) -> Guess:
        return Guess(replace(self.stated, inputs={}), False, (why,), self.reasons)


def _merged(declared: Contract | None, flags: Mapping[str, Any] | None) -> Contract:
    base = declared or Contract()
    if not flags:
        return base
    given = Contract.from_mapping(flags, "flags")
    changes: dict[str, Any] = {k: getattr(given, k) for k in flags if k not in _TABLES}
    for name in _TABLES:
        if name in flags:
            changes[name] = {**getattr(base, name), **getattr(given, name)}
    if "weights" in flags:
        changes["sums_over"] = given.sums_over
    return replace(base, **changes)


_TABLES = ("inputs", "init", "kinds", "values", "sizes")


