"""Which part of a stacked recurrent state is the query."""

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.relations.influence import moved
from regard.check.relations.layout import layout
from regard.check.relations.many import Answer

__all__ = ["declared_layer"]


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


def _wanted(where: dict[str, int], words: set[str], bench: Bench) -> bool | None:
    top = where.get("layers", 0) == (bench.sizes["layers"] - 1 if "layers" in where else 0)
    if "top" not in words and "layers" in where:
        return None if not top else True
    if "forward" in words and "dirs" in where:
        return top and where["dirs"] == 0
    if "backward" in words and "dirs" in where:
        return top and where["dirs"] == 1
    return top
