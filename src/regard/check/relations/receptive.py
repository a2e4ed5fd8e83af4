"""Which key moves which query's row, against the declared pattern and masks."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Case, Verdict, fails, holds, relation
from regard.check.relations.layout import Layout, layout
from regard.check.relations.many import answers
from regard.check.relations.order import is_axial
from regard.check.subject import Outcome

__all__ = [
    "COLD",
    "cool",
    "hidden_weights",
    "influences",
    "receptive_field",
    "redrawn",
    "stays",
    "weight_pattern",
]

_COOL = 0.2
COLD = 0.01
"""A factor that makes scores so small that sparse weights leave no key out."""

_LEFT = 1e-7  # weight of a hidden key among cool scores that no fill leaves
_GONE = 1e-8  # below the least number of half precision
_NONE = 1e-9  # a weight below it is none


@relation("receptive-field", "key j moves row t exactly where t may attend to j", cost=6)
def receptive_field(bench: Bench) -> Verdict | None:
    """Change one key position after the other and see which rows move."""
    here = layout(bench)
    if not here.keys or not here.key_parts() or is_axial(bench):
        return None
    name = next(iter(here.contexts()), None)
    if name is None:
        return None
    found = influences(bench, name)
    if found is None:
        return None
    moved, still = found
    if not moved.any() and _are_unread(here):
        return None  # inputs-matter says so
    missed = still & here.allowed()
    for other in redrawn(bench) if missed.any() else ():
        again = influences(other, name)
        if again is not None and ((again[1] & here.allowed()) != missed).any():
            still = np.zeros_like(still)
            break
    return _against(here, moved, still, name, "moves")


def _are_unread(here: Layout) -> bool:
    """Whether the recording leads from no key to any result."""
    outputs = getattr(here.bench.trace, "outputs", ())
    reached = {s for o in outputs if o is not None for s in o.sources}
    return bool(reached) and not any(f"input:{n}" in reached for n in here.key_parts())


@relation("weights-follow-pattern", "weights[t, j] > 0 exactly where t may attend to j", cost=0)
def weight_pattern(bench: Bench) -> Verdict | None:
    """Compare where the returned weights are zero with the pattern and masks."""
    here = layout(bench)
    weights = here.alignment(bench.out)
    if weights is None or not here.keys or weights.shape[2] != here.n_queries:
        return None
    tiny = 1e-3 if bench.contract.dtype in ("float16", "bfloat16") else 1e-5
    seen = (np.abs(weights) > tiny).any(axis=1)
    unseen = (np.abs(weights) < 1e-9).any(axis=1)
    hidden = ~here.allowed() & here.allowed().any(-1, keepdims=True)
    half = bench.contract.dtype in ("float16", "bfloat16")
    for factor in (_COOL, COLD):  # a weight may vanish beside another in hot scores
        both = (unseen & here.allowed()).any() or (hidden.any() and not half)
        calmer = cool(here, factor) if both else {}
        out = bench.ok(**calmer) if calmer else None
        calm = here.alignment(out) if out is not None else None
        if calm is not None:
            unseen &= (np.abs(calm) < 1e-9).any(axis=1)
            # What bends or bounds a score after the mask leaves a little of every key.
            seen |= hidden & (np.abs(calm) > _LEFT).any(axis=1) & (not half)
    missed = unseen & here.allowed()
    none = _unseen(bench)
    for other in redrawn(bench) if missed.any() else ():
        drawn = _unseen(other)
        if drawn is not None and none is not None and ((drawn != none) & missed[:, None]).any():
            unseen = np.zeros_like(unseen)
            break
    return _against(here, seen, unseen, bench.contract.weights or "", "weighs")


@relation("hidden-weights-vanish", "weights[t, j] = 0 where j is hidden from t", strict=True)
def hidden_weights(bench: Bench) -> Verdict | None:
    """A fill that is only a little below the scores hides nothing from a loud key."""
    here = layout(bench)
    weights = here.alignment(bench.out)
    if weights is None or not here.keys or weights.shape[2] != here.n_queries:
        return None
    hidden = ~here.allowed() & here.allowed().any(-1, keepdims=True)
    if not hidden.any():
        return None
    if np.abs(weights).max(axis=1)[hidden].max() > _GONE:
        return fails(
            "RG202", "a hidden key keeps some weight", about=bench.contract.weights or ""
        )
    return holds()


def _unseen(bench: Bench) -> np.ndarray | None:
    """Which keys get no weight, (batch, head, query, key): heads leave out their own."""
    here = layout(bench)
    weights = here.alignment(bench.out) if isinstance(bench.base, Outcome) else None
    return None if weights is None else np.abs(weights) < 1e-9


def redrawn(bench: Bench) -> Iterator[Bench]:
    """The same code and masks with other content.

    Sparse weights (sparsemax, the largest few, one-hot) and saturated ones leave keys out as
    their content has it; a mask leaves out the same keys whatever they hold.
    """
    for more in (1, 2, 3):
        case = Case(bench.case.loaded, bench.contract, seed=bench.case.seed + more)
        yield case.bench(bench.sizes.which)


def stays(bench: Bench, args: dict[str, Any], missed: np.ndarray) -> bool:
    """Whether keys that get no weight under some arguments get none under other content.

    ``missed`` is (batch, head, query, key), or without heads where any may have missed one.
    """
    for other in redrawn(bench):
        out = other.ok(**args)
        weights = layout(other).alignment(out) if out is not None else None
        if weights is None:
            continue
        weight = np.abs(weights) if missed.ndim == weights.ndim else np.abs(weights).min(axis=1)
        if (weight[missed] >= _NONE).any():
            return False
    return True


def influences(bench: Bench, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Which keys surely move which rows of a result, and which surely do not."""
    here = layout(bench)
    base = here.context(bench.out, name)
    if base is None or base.shape[1] != here.n_queries:
        return None
    shape = (base.shape[0], here.n_queries, here.n_keys)
    moved, still = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    half = bench.contract.dtype in ("float16", "bfloat16")
    allowed = here.allowed()
    still |= True
    left = list(range(here.n_keys))
    # A key of little weight is asked again, louder, and at last among cooler scores.
    for salt, scale in ((1, 1.0), (2, 3.0), (3, 9.0), (4, _COOL), (5, COLD)):
        variants = [here.at_key(j, salt, max(1.0, scale)) for j in left]
        before: np.ndarray | None = base
        if scale < 1.0:
            calmer = cool(here, scale)
            out = bench.ok(**calmer)
            before = here.context(out, name) if out is not None else None
            variants = [
                {**calmer, **{n: v * scale for n, v in each.items() if n in calmer}}
                for each in variants
            ]
        if before is None:
            return None
        for j, answer in zip(left, answers(here, variants), strict=True):
            after = answer.get(name) if answer is not None else None
            if after is None:
                return None
            gap = np.abs(after - before) / (1.0 + np.abs(before))
            gap[np.isnan(after) & np.isnan(before)] = 0.0
            gap = np.nan_to_num(gap, nan=1e9).max(axis=-1)
            moved[..., j] |= gap > (2e-2 if half else 1e-4)
            still[..., j] &= gap < (1e-6 if half else 1e-7)
        left = [j for j in left if (still & allowed)[..., j].any()]
        if not left:
            break
    return moved, still


def cool(here: Layout, factor: float = _COOL) -> dict[str, np.ndarray]:
    """The float arguments made small, so that no weight vanishes beside another."""
    names = [n for n in here.probe.floats() if here.contract.kinds.get(n) is None]
    return {n: here.probe.args[n] * factor for n in names if n in here.content}


def _against(
    here: Layout, moved: np.ndarray, still: np.ndarray, name: str, verb: str
) -> Verdict:
    allowed = here.allowed()
    rows = _real_rows(here)
    live = rows & allowed.any(-1)
    asked = allowed & live[..., None]
    if verb == "moves":  # a position's own content may be its query too
        other = ~here.own_rows[None]
        moved, still, asked = moved & other, still & other, asked & other
    leak = moved & ~allowed & live[..., None]
    miss = still & allowed & live[..., None]
    if here.contract.sparse and moved.any():  # which of the allowed ones is its own choice
        miss = np.zeros_like(miss)
    if not leak.any() and not miss.any():
        return holds()
    pattern = np.broadcast_to(here.pattern(), allowed.shape)
    by_pattern = leak & ~pattern
    measured = (
        Measurement("keys that may not be read but are", str(int(leak.sum())), "must be 0"),
        Measurement("keys that may be read but are not", str(int(miss.sum())), "must be 0"),
    )
    kinds = tuple(f"kinds.{n}" for n in here.key_masks())
    about = next(iter(here.key_masks()), name)
    if leak.any() and miss.any() and not by_pattern.any() and here.key_masks():
        forbidden = pattern & ~allowed & live[..., None]
        if leak[forbidden].mean() > 0.7 and miss[asked].mean() > 0.7:
            return fails(
                "RG201",
                f"`{name}` reads exactly the keys that `{about}` forbids",
                about=about,
                measured=measured,
                depends_on=kinds,
                hidden="every shape is right; without padding the mask does nothing visible",
            )
    if by_pattern.any():
        return _pattern_leak(here, leak, miss, name, measured)
    if leak.any():
        return fails(
            "RG202",
            f"a key that `{about}` forbids {verb} `{name}`",
            about=about,
            measured=measured,
            depends_on=kinds,
            hidden="every shape is right and nothing raises",
        )
    if verb == "moves" and not moved.any() and not leak.any():
        return fails(
            "RG701",
            f"no key reaches `{name}`",
            about=name,
            measured=measured,
            hidden="every shape is right and nothing raises",
        )
    code = "RG204" if here.contract.causal or here.contract.window else "RG305"
    if here.key_masks() and (code == "RG305" or miss[asked].mean() > 0.9):
        code = "RG201"  # whatever may be read is not: no pattern is that far off
    return fails(
        code,
        f"a key that may be read does not reach `{name}`",
        about=name,
        measured=measured,
        depends_on=kinds if code == "RG201" else ("causal", "window"),
        hidden="every shape is right and nothing raises",
    )


def _pattern_leak(
    here: Layout,
    leak: np.ndarray,
    miss: np.ndarray,
    name: str,
    measured: tuple[Measurement, ...],
) -> Verdict:
    pattern = here.pattern()
    if not here.contract.causal:
        code, text = "RG204", f"`{name}` reads keys outside the declared window"
        return fails(code, text, about=name, measured=measured, depends_on=("window",))
    rows, total = pattern.shape
    k, q = np.arange(total)[None], np.arange(rows)[:, None]
    shift = total - rows if here.contract.causal == "bottom_right" else 0
    ahead = (leak.any(axis=0) & (k > q + shift)).any()
    if not ahead:
        text = f"`{name}` reads a key farther back than the window of {here.contract.window}"
        return fails("RG204", text, about=name, measured=measured, depends_on=("window",))
    far = (leak.any(axis=0) & (k > q + shift + 1)).any()
    code = "RG203" if far else "RG204"
    text = (
        f"a later position moves an earlier row of `{name}`"
        if far
        else f"a row of `{name}` sees one position too many: the causal diagonal is off by one"
    )
    return fails(
        code,
        text,
        about=name,
        measured=measured,
        depends_on=("causal",),
        hidden="every shape is right; the loss only looks better",
    )


def _real_rows(here: Layout) -> np.ndarray:
    """Query rows that are real: (batch, query) booleans."""
    rows = np.ones((here.batch, here.n_queries), dtype=bool)
    for name, kind in here.contract.kinds.items():
        mask = here.probe.masks.get(name)
        if mask is None or kind == "additive" or not here.queries:
            continue
        if len(mask.real) not in (1, here.batch):
            continue  # a table of pairs, whose first axis is no example
        if mask.axis in here.queries and mask.real.shape[-1] == here.n_queries:
            rows &= np.broadcast_to(mask.real, rows.shape)
    return rows
