"""What is stated of a target, joined: a declared contract and single statements over it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from regard.check.contract import Contract
from regard.check.roles.cast import ROLES
from regard.errors import InputError, explain

__all__ = ["merged", "refuse_unknown"]

_TABLES = ("inputs", "init", "kinds", "values", "sizes")


def refuse_unknown(mask: Any, roles: Mapping[str, Any]) -> None:
    """Refuse a polarity or a part of an argument that there is not.

    Raises
    ------
    InputError
        One is none of those known.
    """
    if mask not in ("", None, "keep", "drop"):
        raise InputError(
            explain("check: `mask` is no polarity", expected="keep or drop", got=repr(mask))
        )
    for name, role in roles.items():
        if role not in ROLES:
            raise InputError(
                explain(
                    f"check: `{name}` has no role of that name",
                    expected=", ".join(ROLES),
                    got=repr(role),
                )
            )


def merged(declared: Contract | None, flags: Mapping[str, Any] | None) -> Contract:
    """Return a contract with single statements laid over it, tables entry by entry."""
    base = declared or Contract()
    if not flags:
        return base
    given = Contract.from_mapping(flags, "flags")
    changes: dict[str, Any] = {k: getattr(given, k) for k in flags if k not in _TABLES}
    for name in _TABLES:
        if name in flags:
            changes[name] = {**getattr(base, name), **getattr(given, name)}
    if "weights" in flags:
        changes["sums_over"] = given.sums_over
    return replace(base, **changes)
