"""What weakens a reading without failing it: printed beside the verdict."""

from collections.abc import Iterator

import numpy as np

from regard.audit.retrain import accuracies
from regard.audit.store import Store

__all__ = ["downgrades_of"]

_FLAT = 2.0  # times 1/L: a largest weight below this singles nothing out


def downgrades_of(store: Store) -> list[str]:
    """Return sentences for what the descriptive tests found."""
    return [*_needed(store), *_seeds(store), *_others(store), *_flat(store)]


def _needed(store: Store) -> Iterator[str]:
    columns = store.columns("retrain")
    learned, equal = (accuracies(columns, kind) for kind in ("learned", "uniform"))
    if (
        len(learned) > 1
        and equal
        and np.mean(equal) >= np.mean(learned) - np.std(learned, ddof=1)
    ):
        yield (
            "Uniform attention trains to the same accuracy: attention is not needed for this "
            "task."
        )


def _seeds(store: Store) -> Iterator[str]:
    columns = store.columns("retrain")
    apart = accuracies(columns, "learned", "divergence")
    equal = columns.get("to equal", ())
    if apart and np.mean(apart) >= np.mean(equal) / 2:
        yield (
            f"Trained with other seeds, the weights differ by {np.mean(apart):.2f} (JSD), "
            f"equal weights by {np.mean(equal):.2f}: a single map is as much the seed's as the "
            "task's."
        )


def _others(store: Store) -> Iterator[str]:
    exists = store.columns("adversary").get("exists", ())
    if len(exists):
        yield (
            f"Alternative weights with the same output exist for {np.mean(exists):.0%} of "
            "inputs (expected for a single-logit read-out; not counted)."
        )
    free = store.columns("null_space").get("any", ())
    if len(free) and np.mean(free) > 0:
        yield (
            f"For {np.mean(free):.0%} of inputs some weights can move without the context "
            "vector changing."
        )


def _flat(store: Store) -> Iterator[str]:
    rows = store.columns("erase_input").get("tokens.weight", [])
    flat = float(np.mean([max(row) < _FLAT / len(row) for row in rows])) if rows else 0.0
    if flat > 0.5:
        yield (
            f"In {flat:.0%} of the inputs the largest weight is below twice an equal share: "
            "the weights single out little."
        )
