"""Whether the expressions of a contract have values: axes, sizes, the scale, plain arguments.

They are evaluated when a contract is read, so that one without a value is refused where it was
written and not passed over where it would have been used.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from regard.check.sizes import SETS, Sizes
from regard.errors import InputError, explain

__all__ = ["checked_sizes", "refuse_without_value"]


def checked_sizes(where: str, data: Any) -> dict[str, int]:
    """Return declared sizes, each a whole number of at least 1.

    Raises
    ------
    InputError
        They are no table of such numbers.
    """
    if not isinstance(data, Mapping):
        raise _refused(where, "sizes", 'a table of whole numbers, as {"d_head": 8}', data)
    for name, size in data.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise _refused(where, f"sizes.{name}", "a whole number of at least 1", size)
    return {str(name): size for name, size in data.items()}


def refuse_without_value(
    where: str, sizes: Mapping[str, int], axes: Mapping[str, str], values: Mapping[str, Any]
) -> None:
    """Evaluate everything once with every set of sizes.

    Parameters
    ----------
    where : str
        The contract's file, or "the command line".
    sizes : mapping
        Declared sizes.
    axes : mapping
        Statement, as ``inputs.q``, to its axes.
    values : mapping
        Statement, as ``scale`` or ``init.width``, to what stands there.

    Raises
    ------
    InputError
        An axis is no expression of sizes or no whole number; the scale is no number but
        zero; a value has none.
    """
    for which in range(len(SETS)):
        known = Sizes(which, sizes)
        for statement, text in axes.items():
            for token in text.split():
                size = _value(where, statement, token, known)
                if not _is_number(size) or size < 1 or size != int(size):
                    expected = "axes that are whole numbers of at least 1, spaces between them"
                    raise _refused(where, statement, expected, token, _shown(size))
        for statement, given in values.items():
            for text in _texts(given):
                value = _value(where, statement, text, known)
                if statement == "scale" and (not _is_number(value) or value == 0):
                    expected = "a number that is not 0, as 1/sqrt(d_head), or learned"
                    raise _refused(where, statement, expected, text, _shown(value))


def _texts(given: Any) -> Iterator[str]:
    if isinstance(given, Mapping):
        for value in given.values():
            yield from _texts(value)
    elif isinstance(given, list):
        for value in given:
            yield from _texts(value)
    elif isinstance(given, str):
        yield given


def _value(where: str, statement: str, text: str, sizes: Sizes) -> Any:
    try:
        return sizes.value(text)
    except InputError as error:
        because = str(error).partition("because")[2].strip()
    except (RecursionError, MemoryError):
        because = "nested too deeply"
    expected = "names of axes, whole numbers, + - * / // ** and sqrt()"
    if "," in text:
        expected += ", spaces between axes"
    raise _refused(where, statement, expected, text, because) from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _shown(value: Any) -> str:
    return f"it is {value!r:.60}"


def _refused(
    where: str, statement: str, expected: str, got: Any, because: str = ""
) -> InputError:
    return InputError(
        explain(
            f"check: `{statement}` of {where} is refused",
            expected=expected,
            got=f"{got!r:.80}",
            because=because or None,
        )
    )
