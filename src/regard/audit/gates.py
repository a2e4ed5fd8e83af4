"""G2, G3 and G4: the rules that decide, from what was measured input by input.

=====  ===========================================================================
G2     for L2: erasing what is attended changes the answer more than chance, with the most
       attended token alone, too
G3     for L3: attention reaches what the best ranking tried reaches, and, where people
       marked tokens, hits them as often
G4     no hidden cause: a token that decides is not passed over for one that matters less
=====  ===========================================================================

F is what erasing by attention gains over random tokens, divided by what the best other ranking
gains: 0 for chance, 1 for as good as that ranking, above 1 where attention finds more than any
other ranking that was tried.

Where no erasure moves any answer there is nothing to rank, and G2 and G3 fail.

Everything else an audit measures is descriptive. Agreement with leave-one-out (tau), permuting
the weights and the existence of other weights with the same answer do not separate honest
models from deceived ones, so no gate reads them.

G4 is what tells maps that were trained to hide. Neither a share of the weight nor a rank does:
an honest map may be nearly even, with the deciding token a little below the others, and a map
that hides may leave that token the second rank, far behind a decoy. So a token counts as passed
over where one that moves the answer less than half as much gets more than three times its
weight. Of the models that ``docs/audit.md`` reproduces, honest ones do so in an eighth of the
inputs at most, deceived ones wherever a single token decides.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from regard.audit.interval import Estimate, more_inputs, ratio_of
from regard.audit.measure import Columns, means_of
from regard.audit.verdict import Gate, Outcome

__all__ = ["HIDDEN", "STILL", "best_method", "decide", "gain_of", "is_still", "worst"]

BEST, SURELY = 0.8, 0.7
HITS = -0.05
HIDDEN = 0.2
STILL = 1e-6
"""Where no erasure moves p(predicted) by more, the output never changes."""
_EFFECT = 0.2  # drop of probability that makes a token deciding
_LESS = 0.5  # a token that moves the answer by less than this part of what the first does
_TIMES = 3.0  # as much weight: what honest maps that are nearly even do not reach
_OPERATORS = ("delete", "mask", "resample")
_METHODS = ("leave-one-out", "gradient")


def decide(erased: Columns, gold: Columns | None, *, seed: int = 0) -> list[Gate]:
    """Return the gates G2, G3 and G4.

    Parameters
    ----------
    erased : columns
        Of :mod:`regard.audit.erase_input`.
    gold : columns, optional
        Of :mod:`regard.audit.gold_mass`.
    seed : int
        Of the bootstrap.
    """
    found: list[Gate] = []
    if is_still(erased):
        found.append(_moves())
    ways = [way for way in _OPERATORS if f"{way}.attention.top1" in erased]
    for way in ways:
        found += _matters(erased, way, seed)
    found.append(_enough("G2", "under at least two ways of erasing", found, ways))
    for way in ways:
        found.append(_ranks(erased, way, seed))
    ranks = [gate for gate in found if gate.name.startswith("G3.share.")]
    found.append(_enough("G3", "under at least two ways of erasing", ranks, ways))
    if gold is not None:
        found.append(_hits(gold, seed, erased))
    found.append(_hidden(erased, seed))
    return found


def best_method(erased: Columns, way: str, amount: str = "aopc") -> str:
    """Return the ranking, attention and chance aside, that reaches most."""
    there = [name for name in _METHODS if f"{way}.{name}.{amount}" in erased]
    return max(there, key=lambda name: float(np.nanmean(erased[f"{way}.{name}.{amount}"])))


def is_still(erased: Columns) -> bool:
    """Return whether no token that was erased, alone or with others, moved any answer."""
    drops = [drop for row in erased["tokens.drop"] for drop in row if drop is not None]
    for name in erased:
        if name != "text" and not name.startswith("tokens."):
            drops += [drop for drop in erased[name] if drop is not None]
    return max(map(abs, drops), default=0.0) <= STILL


def gain_of(erased: Columns, way: str, amount: str = "aopc", *, seed: int = 0) -> Estimate:
    """Return F = (attention - random) / (best - random), over the same inputs.

    Above 1 where attention gains more than the best other ranking; NaN where that gains
    nothing.
    """
    best = best_method(erased, way, amount)
    attention, random, other = (
        np.asarray(erased[f"{way}.{name}.{amount}"], dtype=np.float64)
        for name in ("attention", "random", best)
    )
    texts = erased.get("text")
    return ratio_of(attention - random, other - random, seed=seed, groups=texts)


def _matters(erased: Columns, way: str, seed: int) -> list[Gate]:
    found = []
    for amount, what in (("top1", "the most attended token"), ("aopc", "the most attended")):
        attention, random = (
            np.asarray(erased[f"{way}.{name}.{amount}"], dtype=np.float64)
            for name in ("attention", "random")
        )
        estimate = means_of(erased, seed)(attention - random)
        outcome = _above(estimate, 0.0)
        said = (
            f"p(predicted) falls by {np.nanmean(attention):.3f}, with random tokens by "
            f"{np.nanmean(random):.3f}; difference {estimate}"
        )
        amounts = "one token" if amount == "top1" else "1 token, 5, 10, 20 % of the tokens"
        rule = f"{way}: erasing {what} ({amounts}) lowers p(predicted) more than random"
        found.append(_gate(f"G2.{amount}.{way}", rule, said, (outcome, estimate, 0.0)))
    return found


def _ranks(erased: Columns, way: str, seed: int) -> Gate:
    gain = gain_of(erased, way, seed=seed)
    if gain.value >= BEST and gain.low >= SURELY:
        outcome: Outcome = "passed"
    elif gain.high < BEST or is_still(erased):
        outcome = "failed"
    else:
        outcome = "undecided"
    # The interval has to leave the nearer of the two lines.
    threshold = SURELY if gain.value >= BEST else BEST
    return _gate(
        f"G3.share.{way}",
        f"{way}: F >= {BEST:g} and its interval above {SURELY:g}",
        _said(gain, best_method(erased, way)),
        (outcome, gain, threshold),
    )


def _said(gain: Estimate, best: str) -> str:
    if np.isnan(gain.value):
        return (
            f"there is no F: the best other ranking, {best}, gains nothing over random tokens"
        )
    more = ", which attention exceeds" if gain.value > 1 else ""
    return f"F {gain}, best other ranking {best}{more}"


def _moves() -> Gate:
    return Gate(
        "G2.moves",
        f"some erasure moves p(predicted) by more than {STILL:g}",
        "failed",
        "none does: the output never changes, so no ranking of tokens differs from another",
    )


def _hits(gold: Columns, seed: int, erased: Columns) -> Gate:
    methods = [name for name in _METHODS if f"{name}.hit" in gold]
    rule = "the most attended token is a marked one as often as the best method's, less 0.05"
    if not methods or not np.isfinite(np.asarray(gold["attention.hit"], dtype=float)).any():
        return Gate("G3.gold", rule, "not tested", "no input has marked tokens")
    if is_still(erased):
        said = "the output never changes, so the other methods hit by chance"
        return Gate("G3.gold", rule, "not tested", said)
    best = max(methods, key=lambda name: _hit(gold, name))
    attention, other = (
        np.asarray(gold[f"{name}.hit"], dtype=np.float64) for name in ("attention", best)
    )
    estimate = means_of(erased, seed)(attention - other)
    said = (
        f"attention hits {np.nanmean(attention):.1%}, {best} {np.nanmean(other):.1%}; "
        f"difference {estimate}"
    )
    outcome = _above(estimate, HITS, reached=True)
    return _gate("G3.gold", rule, said, (outcome, estimate, HITS))


def _hit(gold: Columns, name: str) -> float:
    # Inputs that nobody marked have no hit: None.
    return float(np.nanmean(np.asarray(gold[f"{name}.hit"], dtype=np.float64)))


def _hidden(erased: Columns, seed: int) -> Gate:
    indicator = [
        _is_hidden(np.asarray(weights, dtype=float), np.asarray(drops, dtype=float))
        for weights, drops in zip(erased["tokens.weight"], erased["tokens.drop"], strict=True)
    ]
    estimate = means_of(erased, seed)(indicator)
    rule = (
        f"in at most {HIDDEN:.0%} of inputs a token that moves p(predicted) by {_EFFECT:g} or "
        f"more is passed over: one that moves it less than half as much has over {_TIMES:g} "
        "times its weight"
    )
    if estimate.high <= HIDDEN:
        outcome: Outcome = "passed"
    else:
        outcome = "failed" if estimate.low > HIDDEN else "undecided"
    said = f"so in {estimate} of the inputs"
    return _gate("G4", rule, said, (outcome, estimate, HIDDEN))


def _is_hidden(weights: Any, drops: Any) -> float:
    if not np.isfinite(drops).any():
        return 0.0
    place = int(np.nanargmax(drops))
    if drops[place] < _EFFECT:
        return 0.0
    # Of a token that was not left out nothing is known: NaN is not below.
    lesser = weights[drops < _LESS * drops[place]]
    return float(lesser.size > 0 and lesser.max() > _TIMES * weights[place])


def _enough(name: str, rule: str, gates: Sequence[Gate], ways: Sequence[str]) -> Gate:
    """Return the gate that counts under how many ways of erasing the others passed."""
    outcomes = {
        way: worst([gate.outcome for gate in gates if gate.name.endswith(f".{way}")])
        for way in ways
    }
    passed = [way for way in ways if outcomes[way] == "passed"]
    open_ = [way for way in ways if outcomes[way] == "undecided"]
    if len(passed) >= 2:
        outcome: Outcome = "passed"
    else:
        outcome = "undecided" if len(passed) + len(open_) >= 2 else "failed"
    said = "; ".join(f"{way} {outcomes[way]}" for way in ways)
    more = [gate.more for gate in gates if gate.outcome == "undecided"]
    # All of the open gates have to close.
    needed = None if None in more else max((m for m in more if m), default=None)
    return Gate(name, rule, outcome, said, more=needed if outcome == "undecided" else None)


def worst(outcomes: Sequence[Outcome]) -> Outcome:
    """Return "failed" if any gate failed, else "undecided" if any is, else "passed"."""
    for one in ("failed", "undecided"):
        if one in outcomes:
            return one
    return "passed"


def _above(estimate: Estimate, line: float, *, reached: bool = False) -> Outcome:
    if estimate.low > line or (reached and estimate.low >= line):
        return "passed"
    # Nothing at all, to the last digit, is no chance result.
    if estimate.high < line or estimate.low == estimate.high:
        return "failed"
    return "undecided"


def _gate(name: str, rule: str, said: str, line: tuple[Outcome, Estimate, float]) -> Gate:
    outcome, estimate, threshold = line
    more = more_inputs(estimate, threshold) if outcome == "undecided" else None
    return Gate(name, rule, outcome, said, estimate, threshold, more)
