"""Masks: what they forbid is unread and unweighed, what they allow is read."""

from typing import Any

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, near, relation
from regard.check.relations.layout import Layout, layout
from regard.check.relations.receptive import cool, stays
from regard.check.subject import Crash

__all__ = [
    "holes",
    "loud_padding",
    "mask_of",
    "more_padding",
    "query_rows",
]


@relation("padding-unread", "content of padding, however large, changes nothing", cost=1)
def loud_padding(bench: Bench) -> Verdict | None:
    """Replace the content at keys that no query may attend to by large numbers."""
    here = layout(bench)
    allowed = here.allowed()
    if not here.key_masks() or not here.keys or here.joined or not here.key_parts():
        return None
    unread = ~np.any(allowed, axis=1)
    if not unread.any() or "zero_padded" in bench.contract.kinds.values():
        return None
    scale = 3.0 if bench.contract.dtype in ("float16", "bfloat16") else 30.0
    args = {n: _at(here, n, unread, scale) for n in here.key_parts()}
    return _same_rows(here, bench, args, "padding-unread")


@relation("mask-of-holes", "a key masked out anywhere is unweighed and unread", cost=1)
def holes(bench: Bench) -> Verdict | None:
    """Mask scattered keys instead of a tail, and change what lies there."""
    here = layout(bench)
    for name in here.key_masks():
        value, kind = bench.probe.args[name], bench.contract.kinds[name]
        if not isinstance(value, np.ndarray) or kind in ("token_ids_pad0", "zero_padded"):
            continue
        keep = here.keep(name)
        if keep.shape[1] > 1 or here.joined:
            continue
        fresh = _scattered(here, keep[:, 0], tail=kind == "lengths")
        verdict = _obeyed(here, bench, name, fresh)
        if verdict is not None:
            return verdict
    return holds() if here.key_masks() else None


def _scattered(here: Layout, keep: np.ndarray, tail: bool) -> np.ndarray:
    """Another (batch, key) mask: holes at random, or another length where it counts keys."""
    rng = np.random.default_rng(11)
    if tail:
        counts = rng.integers(2, here.n_keys, len(keep))
        return np.asarray(np.arange(here.n_keys)[None] < counts[:, None])
    fresh = rng.random(keep.shape) < 0.6
    fresh[np.arange(len(fresh)), rng.integers(0, 2, len(fresh))] = True
    # One example may not read its first key, which a tail of padding never forbids.
    fresh[0, 0], fresh[0, 1 % fresh.shape[1]] = False, True
    return np.asarray(fresh)


def _obeyed(here: Layout, bench: Bench, name: str, fresh: np.ndarray) -> Verdict | None:
    """Run with that mask: None where it is obeyed."""
    args = {name: mask_of(here, name, fresh)}
    out = bench.ok(**args)
    if out is None:
        return None
    shape = (here.batch, here.n_queries, here.n_keys)
    allowed = np.broadcast_to(here.pattern()[None] & fresh[:, None], shape)
    for other in here.key_masks():
        if other != name:
            allowed = allowed & here.keep(other)
    live = np.any(allowed, axis=-1)
    if here.is_self:
        live = live & np.any(allowed, axis=1)  # a padded position's own row is its own
    weights = here.alignment(out)
    if weights is not None and weights.shape[2] == allowed.shape[1]:
        heavy = (np.abs(weights).max(axis=1) > _tiny(bench)) & ~allowed & live[..., None]
        light = (np.abs(weights).min(axis=1) < 1e-9) & allowed & live[..., None]
        if light.any() and not heavy.any():
            out = bench.ok(**cool(here), **args)  # a weight may vanish in hot scores
            calm = here.alignment(out) if out is not None else None
            if calm is not None:
                light &= np.abs(calm).min(axis=1) < 1e-9
        if light.any() and not heavy.any():
            light &= stays(bench, args, light[:, None] & (np.abs(weights) < 1e-9))
        if bench.contract.sparse:
            light = np.zeros_like(light)
        if heavy.any() or light.any():
            return _disobeyed(here, name, heavy, light)
    return _unread(here, bench, name, args, allowed)


def _unread(
    here: Layout, bench: Bench, name: str, args: dict[str, Any], allowed: np.ndarray
) -> Verdict | None:
    """What a mask forbids to everyone moves nothing; None where that holds."""
    out, live = bench.ok(**args), np.any(allowed, axis=-1)
    unread = ~np.any(allowed, axis=1)
    again = bench.ok(**{**args, **{n: _at(here, n, unread, 1.0) for n in here.key_parts()}})
    if again is None or out is None:
        return None
    for result in here.contexts():
        a, b = here.context(out, result), here.context(again, result)
        if a is None or b is None or a.shape[1] != live.shape[1]:
            continue
        rows = np.broadcast_to(live, a.shape[:2])
        rows = rows & ~unread if here.is_self else rows
        rows = rows & ~_counted(here, allowed, unread)
        if not near(b[rows], a[rows], _loose(bench)):
            return _disobeyed(here, name, rows, np.zeros(1, dtype=bool))
        lost = rows & ~np.isfinite(a).reshape(*a.shape[:2], -1).all(-1)
        if lost.any():  # every key was forbidden to a query that may read some
            return _disobeyed(here, name, np.zeros(1, dtype=bool), lost)
    return None


def _counted(here: Layout, allowed: np.ndarray, unread: np.ndarray) -> np.ndarray:
    """Rows, (batch, query), that may depend on hidden positions as what lies between.

    Where positions are counted through content, each position between a key that a query may
    read and the query itself counts: not one before its first key, nor one behind it.
    """
    if here.contract.positions != "content" or not here.is_self:
        return np.zeros(allowed.shape[:2], dtype=bool)
    place = np.arange(here.n_keys)
    key, row = place[:, None, None], place[:, None]
    inside = (np.minimum(key, row) < place) & (place < np.maximum(key, row))
    return np.asarray(np.einsum("btk,ktp,bp->bt", allowed, inside, unread, dtype=int) > 0)


@relation("query-mask-rows", "a masked query's row is 0, the others stay", strict=True, cost=1)
def query_rows(bench: Bench) -> Verdict | None:
    """Allow every query: rows that were allowed stay, the others were 0 or stay too."""
    here = layout(bench)
    asked = False
    for name, mask in bench.probe.masks.items():
        value, kind = bench.probe.args[name], bench.contract.kinds[name]
        if name in here.key_masks() or not isinstance(value, np.ndarray) or here.is_self:
            continue
        if mask.axis not in here.queries or not kind.startswith(("keep", "drop")):
            continue
        full = np.ones_like(value) if kind.startswith("keep") else np.zeros_like(value)
        out = bench.ok(**{name: full})
        if out is None:
            continue
        for result in here.contexts():
            a, b = here.context(bench.out, result), here.context(out, result)
            if a is None or b is None or a.shape[1] != mask.real.shape[-1]:
                continue
            asked = True
            real = np.broadcast_to(mask.real, a.shape[:2])
            stay = near(a[real], b[real], _loose(bench))
            gone = near(a[~real], np.zeros_like(a[~real])) or near(a[~real], b[~real])
            if not stay or not gone:
                return fails("RG208", f"`{name}` does more than leave its rows out", about=name)
    return holds() if asked else None


@relation("more-padding", "two more padded keys change nothing", everywhere=False, cost=2)
def more_padding(bench: Bench) -> Verdict | None:
    """Append masked keys, or put them in front where padding is there, and run again.

    In front they move every position: those that are counted must count real tokens.
    """
    here = layout(bench)
    c = bench.contract
    left = c.padding == "left"
    if (
        not here.key_masks()
        or len(here.keys) != 1
        or here.joined
        or (here.is_self and not left)
    ):
        return None
    axis = here.keys[0]
    if axis in c.sizes or "+" in axis:
        return None
    n = bench.sizes[axis]
    wide = bench.case.bench(bench.sizes.which, **{axis: n + 2})
    args: dict[str, Any] = {}
    for name, value in bench.probe.args.items():
        at = here.inputs[name].at(axis)
        longer = wide.probe.args[name]
        if not at or not isinstance(value, np.ndarray):
            args[name] = value
            continue
        axes = layout(wide).inputs[name]
        opened = longer.reshape(axes.shape).copy()
        own, more = (slice(2, None), slice(0, 2)) if left else (slice(0, n), slice(n, None))
        index = tuple(own if i in at else slice(None) for i in range(opened.ndim))
        opened[index] = value.reshape(here.inputs[name].shape)
        tail = tuple(more if i in at else slice(None) for i in range(opened.ndim))
        kind = c.kinds.get(name, "")
        if name in here.key_masks():
            fill = {"drop": True, "drop_int": 1, "drop_float01": 1.0, "additive": -1e9}
            opened[tail] = fill.get(kind, 0)
        elif kind == "weights":
            opened[tail] = 0.0
        args[name] = opened.reshape(longer.shape)
    out = wide.instance.call(args)
    if isinstance(out, Crash):
        return None
    there = layout(wide)
    for name in here.contexts():
        a, b = here.context(bench.out, name), there.context(out, name)
        if a is None or b is None:
            continue
        if here.is_self:
            live = here.allowed().any(axis=1) & (a.shape[1] == n)
            a, b = a[live] if live.shape == a.shape[:2] else a, b[:, 2:]
            b = b[live] if live.shape == b.shape[:2] else b
        if a.shape == b.shape and not near(b, a, _loose(bench)):
            return fails(
                "RG202",
                f"`{name}` changes when more padding is added",
                about=here.key_masks()[0],
                measured=(Measurement("change", f"{np.abs(a - b).max():.3g}", "must be 0"),),
                depends_on=tuple(f"kinds.{n}" for n in here.key_masks()),
                hidden="every shape is right and nothing raises",
            )
    return holds()


def _at(here: Layout, name: str, where: np.ndarray, scale: float) -> Any:
    """An argument with other content at the keys where ``where`` (batch, key) is true."""
    noised = here.noised(name, 7, scale)
    value, axes = here.probe.args[name], here.inputs[name]
    if isinstance(value, tuple):
        return value
    key, batch = axes.at(*here.keys), axes.at("batch")
    order = (*batch, *key)
    picked = where if batch else where[:1]
    mask = picked.reshape([axes.shape[i] for i in order])
    rest = [i for i in range(len(axes.shape)) if i not in order]
    mask = mask.reshape(*mask.shape, *([1] * len(rest)))
    mask = mask.transpose(*np.argsort([*order, *rest]))
    if not batch and here.has_batch and not (where == where[:1]).all():
        return value
    return np.where(mask, noised.reshape(axes.shape), value.reshape(axes.shape)).reshape(
        value.shape
    )


def mask_of(here: Layout, name: str, keep: np.ndarray) -> np.ndarray:
    """A mask argument of the same kind and shape that allows ``keep`` (batch, key)."""
    kind, value, axes = here.contract.kinds[name], here.probe.args[name], here.inputs[name]
    if kind == "lengths":
        return np.asarray(np.sum(keep, axis=-1).astype(value.dtype))
    key, batch = axes.at(*here.keys), axes.at("batch")
    shape = [axes.shape[i] if i in key or i in batch else 1 for i in range(len(axes.shape))]
    order = np.argsort([*batch, *key])
    small = keep.reshape([axes.shape[i] for i in (*batch, *key)]).transpose(*order)
    full = np.broadcast_to(small.reshape(shape), axes.shape).reshape(value.shape)
    if kind == "additive":
        return np.where(full, 0.0, -1e9)
    turned = np.asarray(full if kind.startswith("keep") else ~full)
    return np.asarray(turned.astype(value.dtype))


def _same_rows(here: Layout, bench: Bench, args: dict[str, Any], _: str) -> Verdict | None:
    out = bench.ok(**args)
    if out is None:
        return None
    allowed = here.allowed()
    live = allowed.any(-1)
    if here.is_self:
        live = live & allowed.any(axis=1)  # a padded position's own row is its own
    for name in here.contexts():
        a, b = here.context(bench.out, name), here.context(out, name)
        if a is None or b is None or a.shape[1] != live.shape[1]:
            continue
        if not near(b[live], a[live], _loose(bench)):
            gap = float(np.nan_to_num(np.abs(a - b), nan=np.inf)[live].max())
            return fails(
                "RG202",
                f"`{name}` changes with the content of padding",
                about=here.key_masks()[0],
                measured=(Measurement("change", f"{gap:.3g}", "must be 0"),),
                depends_on=tuple(f"kinds.{n}" for n in here.key_masks()),
                hidden="every shape is right and nothing raises",
            )
    return holds()


def _disobeyed(here: Layout, name: str, heavy: np.ndarray, light: np.ndarray) -> Verdict:
    inverted = heavy.any() and 4 * light.sum() >= heavy.sum()  # some vanish when saturated
    code = "RG201" if inverted else "RG202" if heavy.any() else "RG201"
    text = (
        f"`{name}` works the wrong way round: keys it forbids are read, keys it allows are not"
        if inverted
        else f"a key that `{name}` forbids is read"
        if heavy.any()
        else f"a key that `{name}` allows is not read"
    )
    return fails(
        code,
        text,
        about=name,
        measured=(
            Measurement("forbidden keys that are read", str(int(heavy.sum())), "must be 0"),
            Measurement("allowed keys that are not read", str(int(light.sum())), "must be 0"),
        ),
        depends_on=(f"kinds.{name}",),
        hidden="every shape is right and nothing raises",
    )


def _tiny(bench: Bench) -> float:
    return 1e-3 if bench.contract.dtype in ("float16", "bfloat16") else 1e-5


def _loose(bench: Bench) -> float:
    return 2e-2 if bench.contract.dtype in ("float16", "bfloat16") else 2e-4
