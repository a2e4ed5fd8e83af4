"""A call depends on its arguments alone: no dice, no memory of earlier calls."""

import numpy as np

from regard.check.finding import Measurement
from regard.check.probe import Probe
from regard.check.relations.base import Bench, Verdict, fails, holds, near, relation
from regard.check.relations.layout import layout
from regard.check.subject import Outcome

__all__ = ["drawn", "forgets", "repeatable"]

_HIDDEN = 1e-3  # half precision's, and far below what an unmasked key gets
_SLACK = 2e-2


@relation("eval-repeatable", "the same call twice in eval mode gives the same", cost=1)
def repeatable(bench: Bench) -> Verdict | None:
    """Call again with another state of the random generators."""
    for seed in (1,):
        again = bench.instance.call(bench.probe.args, seed=seed)
        name = _differs(bench, again)
        if name:
            return fails(
                "RG803",
                f"`{name}` differs between two equal calls in eval mode",
                about=name,
                measured=(Measurement("change between two equal calls", *_gap(bench, again)),),
                hidden="every single result looks right; evaluation is random",
            )
    return holds()


@relation(
    "drawn-weights", "with real draws, weights are a distribution over visible keys", cost=1
)
def drawn(bench: Bench) -> Verdict | None:
    """Where draws are stated, and held at their means elsewhere, look at real ones."""
    here = layout(bench)
    if not bench.contract.random or bench.contract.weights is None or not here.keys:
        return None
    allowed = here.allowed()
    for seed in (0, 1):
        out = bench.instance.call(bench.probe.args, seed=seed, drawn=True)
        weights = here.alignment(out) if isinstance(out, Outcome) else None
        if weights is None or weights.shape[0::2] + weights.shape[3:] != allowed.shape:
            return None
        live = np.broadcast_to(np.any(allowed, axis=-1)[:, None], weights.shape[:3])
        hidden = live[..., None] & ~allowed[:, None]
        if np.abs(weights[hidden]).max(initial=0.0) > _HIDDEN:
            return fails(
                "RG202",
                f"a draw gives `{bench.contract.weights}` weight on a key that is hidden",
                about=bench.contract.weights,
                depends_on=("random", *(f"kinds.{n}" for n in here.key_masks())),
                hidden="with every draw at its mean the weights are right",
            )
        total = weights.sum(-1)[live]
        if not bench.contract.reweighted and np.abs(total - 1.0).max(initial=0.0) > _SLACK:
            return fails(
                "RG303",
                f"with real draws `{bench.contract.weights}` does not sum to 1",
                about=bench.contract.weights,
                measured=(
                    Measurement(
                        f"sum over {here.key_name}",
                        f"{total.min():.3f} to {total.max():.3f}",
                        "must be 1",
                    ),
                ),
                depends_on=("random", "weights"),
                hidden="with every draw at its mean the weights are right",
            )
    return holds()


@relation(
    "used-equals-fresh",
    "an object that was used gives what a fresh one gives",
    cost=2,
    everywhere=False,
)
def forgets(bench: Bench) -> Verdict | None:
    """Compare a fresh object with one that has served other calls, sizes and values."""
    used = bench.fresh()
    fresh = used.call(bench.probe.args)
    name = _differs(bench, fresh)
    if name:
        return _kept(bench, name, fresh)
    others = Probe(bench.contract, bench.sizes, seed=8).args
    late = bench.fresh()  # what it keeps of its first call is not of these arguments
    late.call(others)
    after = late.call(bench.probe.args)
    name = _differs(bench, after)
    if name:
        return _kept(bench, name, after)
    smaller = {
        axis: bench.sizes[axis] - 1
        for axis in ("batch", "T_enc", "T_dec", "T")
        if axis in bench.contract.every_axis and axis not in bench.contract.sizes
    }
    other = Probe(bench.contract, bench.sizes.with_(**smaller), seed=7)
    used.call(other.args)
    used.call(others)
    after = used.call(bench.probe.args)
    name = _differs(bench, after)
    return _kept(bench, name, after) if name else holds()


def _kept(bench: Bench, name: str, other: object) -> Verdict:
    values = [n for n, v in bench.contract.values.items() if isinstance(v, list)]
    after = f" with another `{values[0]}`" if values else ""
    return fails(
        "RG803",
        f"`{name}` depends on an earlier call{after}: something is kept that should not be",
        about=name,
        measured=(Measurement("used against fresh", *_gap(bench, other)),),
        hidden="the first call is right",
    )


def _differs(bench: Bench, other: object) -> str:
    if not isinstance(other, Outcome):
        return bench.out.names[0] if bench.out.names else "the result"
    for name, a, b in zip(bench.out.names, bench.out.outputs, other.outputs, strict=False):
        if a is not None and b is not None and a.dtype != object and not near(b, a, 1e-5):
            return name
    return ""


def _gap(bench: Bench, other: object) -> tuple[str, str]:
    if not isinstance(other, Outcome):
        return "raises", "must be 0"
    gap = max(
        float(np.nanmax(np.abs(a.astype(float) - b)))
        for a, b in zip(bench.out.outputs, other.outputs, strict=False)
        if a is not None and b is not None and a.shape == b.shape and a.size
    )
    return f"{gap:.3g}", "must be 0"
