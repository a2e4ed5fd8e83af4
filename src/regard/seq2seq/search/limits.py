"""How long the targets of a batch may become."""

from collections.abc import Sequence

from regard.errors import InputError, explain

__all__ = ["limits_of"]


def limits_of(
    call: str, max_length: int | Sequence[int], batch: int, shortest: int = 0
) -> list[int]:
    """Return one limit for each example.

    Raises
    ------
    InputError
        One is negative or below ``shortest``, or there are not as many as examples.
    """
    limits = [max_length] * batch if isinstance(max_length, int) else list(max_length)
    if len(limits) != batch or any(limit < shortest for limit in limits):
        raise InputError(
            explain(
                f"{call}(): `max_length` is refused",
                expected=f"a number from {shortest}, or {batch} of them",
                got=repr(max_length)[:80],
                because="targets must have that many symbols" if shortest else None,
            )
        )
    return limits
