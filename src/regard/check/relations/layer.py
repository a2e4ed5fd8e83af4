"""Which part of a stacked recurrent state is the query."""

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.influence import moved
from regard.check.relations.layout import layout
from regard.check.relations.many import Answer

__all__ = ["declared_layer", "directions"]


@relation(
    "declared-layer", "the query is the declared layer of the state, and no other", cost=1
)
def declared_layer(bench: Bench) -> Verdict | None:
    """Change one layer and direction after the other."""
    here = layout(bench)
    declared = bench.contract.layer
    if declared is None:
        return None
    words = set(declared.split())
    asked = False
    for name in here.content:
        names = here.inputs[name].names
        stacked = [n for n in names if n in ("layers", "dirs")]
        if not stacked or here.inputs[name].at(*here.keys):
            continue
        asked = True
        sizes = [bench.sizes[n] for n in stacked]
        for index in np.ndindex(*sizes):
            where = dict(zip(stacked, index, strict=True))
            wanted = _wanted(where, words, bench)
            if wanted is None:
                continue
            out = bench.ok(**{name: here.noised(name, **where)})
            if out is None:
                return None
            if moved(here, Answer(here, out, slice(None))) != wanted:
                at = ", ".join(f"{n} {i}" for n, i in where.items())
                text = "is not read" if wanted else "is read"
                return fails(
                    "RG504",
                    f"{at} of `{name}` {text}; the query is declared to be its {declared}",
                    about=name,
                    measured=(
                        Measurement(
                            f"a change at {at}",
                            "moves nothing" if wanted else "moves a result",
                            "must move one" if wanted else "must move nothing",
                        ),
                    ),
                    depends_on=("layer",),
                    hidden="every layer has the same shape",
                )
    return holds() if asked else None


@relation(
    "directions-match",
    "a direction of the query meets its own of the keys",
    strict=True,
    cost=1,
)
def directions(bench: Bench) -> Verdict | None:
    """Silence one direction of the keys: that of the query has nothing left to move."""
    here = layout(bench)
    if bench.contract.score not in ("dot", "scaled_dot") or bench.contract.layer is None:
        return None
    before = here.alignment(bench.out)
    memory = [n for n in here.key_parts() if here.inputs[n].at("dirs")]
    states = [n for n in here.content if here.inputs[n].at("dirs") and n not in memory]
    if before is None or len(memory) != 1 or len(states) != 1:
        return None
    axes = here.inputs[memory[0]]
    for way in range(bench.sizes["dirs"]):
        silent = bench.probe.args[memory[0]].copy()
        index = tuple(way if n == "dirs" else slice(None) for n in axes.names)
        silent.reshape(axes.shape)[index] = 0.0
        one = bench.ok(**{memory[0]: silent})
        two = bench.ok(**{memory[0]: silent, states[0]: here.noised(states[0], dirs=way)})
        a = here.alignment(one) if one is not None else None
        b = here.alignment(two) if two is not None else None
        if a is not None and b is not None and np.abs(a - b).max() > 1e-5:
            return fails("RG504", f"direction {way} of the query meets another of the keys")
    return holds()


def _wanted(where: dict[str, int], words: set[str], bench: Bench) -> bool | None:
    top = where.get("layers", 0) == (bench.sizes["layers"] - 1 if "layers" in where else 0)
    if "top" not in words and "layers" in where:
        return None if not top else True
    if "forward" in words and "dirs" in where:
        return top and where["dirs"] == 0
    if "backward" in words and "dirs" in where:
        return top and where["dirs"] == 1
    return top
