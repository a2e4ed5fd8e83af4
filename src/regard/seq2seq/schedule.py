"""The learning rate over the steps of a run."""

import math

__all__ = ["DECAYS", "share_of_rate"]

DECAYS = ("cosine", "linear", "constant")


def share_of_rate(
    step: int,
    *,
    steps: int,
    warm_up: int,
    decay: str,
    final: float = 0.0,
    position: float | None = None,
) -> float:
    """Return the share of the full learning rate at one step.

    Rises linearly over the first ``warm_up`` steps, then falls to ``final`` at the last one.

    Parameters
    ----------
    step : int
        From 0 to ``steps - 1``.
    steps, warm_up : int
        Of the whole run, and of its beginning.
    decay : {"cosine", "linear", "constant"}
        ``constant`` never falls.
    final : float
        0 to 1.
    position : float, optional
        Where the step lies in a run whose pace was not even; by default ``step``.

    Returns
    -------
    share : float
        Above 0 while warming up, never above 1.

    Examples
    --------
    >>> [share_of_rate(s, steps=5, warm_up=2, decay="linear") for s in range(5)]
    [0.5, 1.0, 0.6666666666666667, 0.33333333333333337, 0.0]
    """
    rise = min(1.0, (step + 1) / warm_up) if warm_up else 1.0
    # The fall begins at the last step of the rise, so that the peak is really reached.
    start = max(warm_up - 1, 0)
    at = step if position is None else position
    done = min(1.0, max(0.0, (at - start) / max(1, steps - 1 - start)))
    if decay == "cosine":
        fall = 0.5 * (1.0 + math.cos(math.pi * done))
    elif decay == "linear":
        fall = 1.0 - done
    else:
        return rise
    return rise * (final + (1.0 - final) * fall)
