"""Whether what is stated fits the target, once its arguments and results are known.

A statement that changes nothing is a misunderstanding, so it is refused and not passed over.
"""

from collections.abc import Mapping
from typing import Any

from regard.check.contract import Contract
from regard.check.loading import Loaded
from regard.check.roles.known import Known
from regard.check.roles.reading import read
from regard.check.sizes import names_in
from regard.errors import InputError, explain

__all__ = ["fitted", "refuse_init_of_function", "with_polarity"]

_PARTS_OF_MODEL = {"heads", "d_head"}  # d_model is their product


def refuse_init_of_function(
    loaded: Loaded, declared: Contract | None, flags: Mapping[str, Any]
) -> None:
    """Refuse arguments of a constructor where there is none.

    Raises
    ------
    InputError
        The target is a function.
    """
    given = {**(declared.init if declared is not None else {}), **(flags.get("init") or {})}
    if given and not loaded.is_module:
        raise InputError(
            explain(
                f"check: `init` is stated of {loaded.entry}, which is a function",
                expected="a class, which is built with these arguments",
                got=", ".join(f"{name}={value}" for name, value in given.items()),
                help="arguments of the function itself are values: --value NAME=VALUE",
            )
        )


def with_polarity(
    loaded: Loaded, declared: Contract | None, polarity: str | None
) -> Contract | None:
    """Return a contract in which every declared mask without a kind has the stated polarity.

    Parameters
    ----------
    loaded : Loaded
    declared : Contract or None
    polarity : "keep" | "drop" | None
        What True means.
    """
    if declared is None or not polarity or not declared.inputs:
        return declared
    try:
        reading = read(loaded.source, loaded.entry)
    except (SyntaxError, ValueError, RecursionError):  # said where it is read again
        return declared
    meanings = Known(loaded, reading, declared, mask=polarity).meanings
    kinds = {
        name: polarity
        for name, meaning in meanings.items()
        if meaning.how == "declared" and name in declared.inputs
    }
    return declared.with_(kinds={**kinds, **declared.kinds})


def fitted(contract: Contract, declared: Contract | None, flags: Mapping[str, Any]) -> Contract:
    """Return the whole contract, the stated alignment in it.

    Parameters
    ----------
    contract : Contract
        What is stated and what was guessed.
    declared : Contract or None
    flags : mapping
        Single statements.

    Raises
    ------
    InputError
        A size, the scale or the alignment is stated in a name that nothing has.
    """
    known = set(contract.every_axis)
    for value in contract.values.values():
        for text in value if isinstance(value, list) else [value]:
            known |= set(names_in(text)) if isinstance(text, str) else set()
    if "d_model" in known:
        known |= _PARTS_OF_MODEL
    stated = Contract.from_mapping(
        {k: v for k, v in flags.items() if k in ("scale", "sizes", "weights")}
    )
    asked = [c for c in (declared, stated) if c is not None]
    for one in asked:
        for name in one.sizes:
            if name not in known:
                raise _unknown(f"sizes.{name}", name, known)
        if one.scale not in (None, "learned"):
            for name in names_in(str(one.scale)):
                if name not in known | set(contract.sizes):
                    raise _unknown("scale", name, known)
    chosen = next((c for c in reversed(asked) if c.weights is not None), None)
    if chosen is None:
        return contract
    if chosen.weights not in contract.out_names:
        raise InputError(
            explain(
                f"check: there is no result `{chosen.weights}` to be the alignment",
                expected=f"weights: one of {', '.join(contract.out_names) or 'the results'}",
                got=repr(chosen.weights),
                help="name the results, in order, with --returns",
            )
        )
    return contract.with_(weights=chosen.weights, sums_over=chosen.sums_over)


def _unknown(statement: str, name: str, known: set[str]) -> InputError:
    return InputError(
        explain(
            f"check: `{statement}` is stated in a name that no axis has",
            expected=f"one of {', '.join(sorted(known)) or 'the axes'}",
            got=repr(name),
            help="name the axes with --axes and --returns",
        )
    )
