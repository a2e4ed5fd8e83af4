"""The words of a verdict.

A verdict names what was looked at, which claim it permits, on which evidence, and how far that
reaches. It never says what an answer is due to: no test here can show that.
"""

from collections.abc import Sequence

import numpy as np

from regard.audit.gates import STILL, best_method, gain_of, is_still
from regard.audit.interval import sign_flip
from regard.audit.measure import Columns, means_of
from regard.audit.verdict import LEVELS, Claim, Gate, Verdict

__all__ = ["judge", "stopped"]

_ON_TRUST = ", if these are the weights that its answers are made with ({})"
_NOTHING = 0.005
"""An effect on a probability below which no token is said to matter."""


def judge(
    gates: Sequence[Gate],
    erased: Columns,
    n: int,
    *,
    downgrades: Sequence[str] = (),
    not_tested: Sequence[tuple[str, str]] = (),
    seed: int = 0,
) -> Verdict:
    """Return the verdict of gates that all ran.

    Parameters
    ----------
    gates : sequence of Gate
        G0 and G1 passed or are not testable.
    erased : columns
        Of :mod:`regard.audit.erase_input`, for the figures in the text.
    n : int
        Inputs.
    downgrades, not_tested
        As :class:`~regard.audit.verdict.Verdict` has them.
    seed : int
        Of the intervals.
    """
    by_name = {gate.name: gate for gate in gates}
    second = [by_name["G2"], by_name["G4"]]
    third = [by_name[name] for name in ("G3", "G3.gold") if name in by_name]
    # Of a case that cannot be run with other weights nobody knows whether these are its own.
    output = by_name.get("G0.output")
    trusted = output is not None and output.outcome == "not tested"
    trust = _ON_TRUST.format(output.said) if output is not None and trusted else ""
    claims = (
        Claim("L1", LEVELS["L1"] + trust, "granted", ("G0", "G1")),
        _claim("L2", second),
        _claim("L3", [*second, *third]),
    )
    l2, l3 = claims[1].outcome, claims[2].outcome
    evidence = _evidence(erased, seed)
    if l2 == "granted":
        beyond = {"granted": " AND L3", "refused": ", NOT L3", "undecided": ", L3 UNDECIDED"}[
            l3
        ]
        headline = f"SUPPORTED AT L2{beyond}{', WEIGHTS ON TRUST' if trusted else ''}"
        text = f"{headline} (n={n}): {evidence}"
        text += _more([gate for gate in third if gate.outcome == "undecided"])
    elif l2 == "refused":
        headline = "REFUSED"
        refusal = _refusal(erased, by_name, seed)
        text = f"{headline} (n={n}): {refusal} {evidence[0].upper()}{evidence[1:]}"
    else:
        headline = "UNDECIDED"
        text = f"{headline} (n={n}): {evidence}"
        text += _more([gate for gate in gates if gate.outcome == "undecided"])
    status = {"granted": "supported", "refused": "refused", "undecided": "undecided"}[l2]
    return Verdict(
        status,  # type: ignore[arg-type]  # one of its literals, by the line above
        headline,
        " ".join([text, *downgrades]),
        claims,
        tuple(gates),
        tuple(downgrades),
        tuple(not_tested),
    )


def stopped(
    gates: Sequence[Gate], n: int, not_tested: Sequence[tuple[str, str]] = ()
) -> Verdict:
    """Return the verdict where G0 or G1 failed, so that nothing further was measured."""
    failed = next(gate for gate in gates if gate.outcome == "failed")
    headline = f"STOPPED AT {failed.name.partition('.')[0]}"
    claims = tuple(
        Claim(level, text, "undecided", (failed.name,)) for level, text in LEVELS.items()
    )
    text = f"{headline} (n={n}): {failed.said}. Asked was: {failed.rule}."
    return Verdict("stopped", headline, text, claims, tuple(gates), (), tuple(not_tested))


def _claim(level: str, gates: Sequence[Gate]) -> Claim:
    outcomes = [gate.outcome for gate in gates if gate.outcome != "not tested"]
    if "failed" in outcomes:
        outcome = "refused"
    else:
        outcome = "undecided" if "undecided" in outcomes else "granted"
    return Claim(
        level,  # type: ignore[arg-type]  # the callers' literals
        LEVELS[level],  # type: ignore[index]
        outcome,  # type: ignore[arg-type]
        tuple(gate.name for gate in gates),
    )


def _evidence(erased: Columns, seed: int) -> str:
    attention = means_of(erased, seed)(erased["delete.attention.aopc"])
    random = float(np.nanmean(erased["delete.random.aopc"]))
    best = best_method(erased, "delete")
    reached = float(np.nanmean(erased[f"delete.{best}.aopc"]))
    gain = gain_of(erased, "delete", seed=seed).value
    text = (
        f"deleting the top-attended tokens lowers p(pred) by {attention.value:.3f} AOPC "
        f"[{attention.low:.3f}, {attention.high:.3f}], random {random:.3f}; {best} reaches "
        f"{reached:.3f}"
    )
    if gain > 1:
        text += f", so attention finds more than any other ranking tried (F {gain:.2f})"
    elif np.isfinite(gain):
        text += f", so attention captures {max(0.0, 100 * gain):.0f} % of what was available"
    return text + "."


def _refusal(erased: Columns, gates: dict[str, Gate], seed: int) -> str:
    if is_still(erased):
        return (
            "the output never changes: none of the erasures moves p(pred) by more than "
            f"{STILL:g}, so these inputs cannot show that any token matters, attended or not."
        )
    failed = [
        gate.name.rpartition(".")[2]
        for gate in gates.values()
        if gate.name.startswith("G2.") and gate.outcome == "failed"
    ]
    way = failed[0] if failed else "delete"
    attention, random = (
        np.asarray(erased[f"{way}.{name}.top1"], dtype=np.float64)
        for name in ("attention", "random")
    )
    figures = f"{np.nanmean(attention):.3f} vs {np.nanmean(random):.3f}"
    figures += "" if way == "delete" else f" by {way}"
    p = sign_flip(attention - random, seed=seed, groups=erased.get("text"))
    said = []
    if gates["G2"].outcome == "failed":
        better = means_of(erased, seed)(attention - random).low > 0
        compared = "hardly better" if better else "no better"
        said.append(f"top-attended token {compared} than random ({figures}, p={p:.2g}).")
    best = best_method(erased, way, "top1")
    reached = float(np.nanmean(erased[f"{way}.{best}.top1"]))
    found = max(float(np.nanmean(attention)), float(np.nanmean(random)))
    hidden = gates["G4"]
    matters = reached > _NOTHING and (hidden.outcome == "failed" or reached >= 2 * found)
    if matters:
        said.append(f"A {best} token exists that matters ({reached:.3f}): the map hides it.")
    if hidden.outcome == "failed" and hidden.estimate is not None:
        said.append(
            f"In {hidden.estimate.value:.0%} of the inputs a token that decides is passed over "
            "for one that matters less."
        )
    return " ".join(said)


def _more(gates: Sequence[Gate]) -> str:
    named = [gate for gate in gates if gate.estimate is not None]
    if not named:
        return ""
    parts = []
    for gate in named:
        many = (
            "no affordable number of inputs would decide it"
            if gate.more is None
            else f"about {gate.more:,} more inputs would decide it"
        )
        parts.append(
            f"{gate.name} is undecided ({gate.estimate} spans {gate.threshold:g}): {many}."
        )
    return " " + " ".join(parts)
