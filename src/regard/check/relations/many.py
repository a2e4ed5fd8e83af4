"""Many variants of the arguments in one call, one beside the other in the batch."""

from typing import Any

import numpy as np

from regard.check.relations.layout import Axes, Layout, layout
from regard.check.subject import Outcome

__all__ = ["Answer", "answers"]


class Answer:
    """The results of one variant: a slice of the batch of a run."""

    def __init__(self, where: Layout, outcome: Outcome, examples: slice) -> None:
        self._where, self._outcome, self._examples = where, outcome, examples

    def get(self, name: str) -> np.ndarray | None:
        """A result as (batch, query, features), weights as (batch, heads, query, key)."""
        if name == self._where.contract.weights:
            found = self._where.alignment(self._outcome)
        else:
            found = self._where.context(self._outcome, name)
        return None if found is None else found[self._examples]


def _stack(parts: list[np.ndarray], axes: Axes, at: int) -> np.ndarray:
    joined = np.concatenate([p.reshape(axes.shape) for p in parts], axis=at)
    sizes = [1] * (max(axes.token) + 1)
    for token, size in zip(axes.token, joined.shape, strict=True):
        sizes[token] *= size
    return joined.reshape(sizes)


def answers(here: Layout, variants: list[dict[str, Any]]) -> list[Answer | None]:
    """Run every variant of the arguments; all in one batch where there is a batch axis.

    Examples of one batch have nothing to do with each other; where that fails,
    :mod:`regard.check.relations.batch` says so.
    """
    changed = {n for v in variants for n in v}
    one_batch = (
        here.has_batch
        and "batch" not in here.contract.sizes
        and "batch" not in " ".join(map(str, here.contract.init.values()))
        and len(variants) > 2
        and all(here.inputs[n].at("batch") for n in changed)
        and all(isinstance(here.probe.args[n], np.ndarray) for n in changed)
    )
    if one_batch:
        found = _together(here, variants)
        if found is not None:
            return found
    single = []
    for changes in variants:
        out = here.bench.ok(**changes)
        single.append(None if out is None else Answer(here, out, slice(None)))
    return single


def _together(here: Layout, variants: list[dict[str, Any]]) -> list[Answer | None] | None:
    many = len(variants)
    wide = here.bench.case.bench(here.sizes.which, **_other(here, batch=here.batch * many))
    args: dict[str, Any] = {}
    for name, value in here.probe.args.items():
        axes = here.inputs[name]
        at = axes.at("batch")
        if not at or name in here.contract.values:
            args[name] = value
        elif isinstance(value, list):
            args[name] = value * many
        elif isinstance(value, tuple):
            args[name] = tuple(_stack([v] * many, axes, at[0]) for v in value)
        else:
            args[name] = _stack([v.get(name, value) for v in variants], axes, at[0])
    out = wide.instance.call(args)
    if not isinstance(out, Outcome):
        return None
    there = layout(wide)
    b = here.batch
    return [Answer(there, out, slice(i * b, (i + 1) * b)) for i in range(many)]


def _other(here: Layout, **sizes: int) -> dict[str, int]:
    """Sizes of this bench that are not of its set, and these."""
    base = here.bench.case.bench(here.sizes.which).sizes
    own = {n: here.sizes[n] for n in here.sizes if here.sizes[n] != base[n]}
    return {**own, **sizes}
