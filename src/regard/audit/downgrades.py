"""What weakens a reading without failing it: printed beside the verdict."""

import numpy as np

from regard.audit.store import Store

__all__ = ["downgrades_of"]

_FLAT = 2.0  # times 1/L: a largest weight below this singles nothing out


def downgrades_of(store: Store) -> list[str]:
    """Return sentences for what the descriptive tests found."""
    found = []
    rows = store.columns("erase_input").get("tokens.weight", [])
    flat = float(np.mean([max(row) < _FLAT / len(row) for row in rows])) if rows else 0.0
    if flat > 0.5:
        found.append(
            f"In {flat:.0%} of the inputs the largest weight is below twice an equal share: the "
            "weights single out little."
        )
    return found
