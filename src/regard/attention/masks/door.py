"""What the doors share: the shape every mask leaves with, and the checks they stand behind.

A number that is neither "may" nor "may not" is refused; none is rounded to the nearer one.
"""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any, TypeVar, cast

from regard.axes import Array, library, namespace
from regard.errors import MaskError, explain

__all__ = ["boolean", "for_every_query", "known", "zero_or"]

_F = TypeVar("_F", bound=Callable[..., Any])

_NO_VALUE = ("data-dependent control flow", "meta tensors")
"""What PyTorch says of a flag under vmap, and of one on the meta device."""


def boolean(*names: str) -> Callable[[_F], _F]:
    """Refuse numbers for the masks of these names, and say which door they belong to.

    It stands before :func:`regard.axes.checked`, whose text cannot know the doors.
    """

    def decorate(function: _F) -> _F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = signature.bind(*args, **kwargs).arguments
            for name in names:
                _require_bool(function.__name__, name, given.get(name))
            return function(*args, **kwargs)

        return cast(_F, call)

    return decorate


def for_every_query(real: Array, T_dec: int | None) -> Array:
    """Repeat a mask of keys (*batch, T_enc) for T_dec queries; as many as keys where None."""
    xp = namespace(real)
    *batch, T_enc = real.shape
    T_dec = T_enc if T_dec is None else T_dec
    return xp.broadcast_to(xp.expand_dims(real, axis=-2), (*batch, T_dec, T_enc))


def known(flag: Array) -> bool:
    """Return the value of a boolean array, or False where it has none that can be looked at.

    It has none under ``jax.jit``, ``torch.compile``, ``torch.func.vmap`` and on PyTorch's meta
    device; eager calls are checked.
    """
    torch = sys.modules.get("torch")  # not imported: flags of other libraries do not need it
    if torch is not None and torch.compiler.is_compiling():
        return False
    try:
        return bool(flag)
    except TypeError:  # a tracer of jax.jit
        return False
    except RuntimeError as error:
        if any(words in str(error) for words in _NO_VALUE):
            return False
        raise


def zero_or(call: str, name: str, mask: Array, lowest: float) -> Array:
    """Return where a float mask is 0; it must be -inf or `lowest` elsewhere."""
    xp = namespace(mask)
    may = mask == 0
    other = ~(may | (mask == float("-inf")) | (mask == lowest))  # NaN is such a number
    if known(xp.any(other)):
        ruled = "0 or -inf" if lowest == float("-inf") else f"0, {lowest:.8g} or -inf"
        raise MaskError(
            explain(
                f"{call}(): `{name}` holds numbers that are neither 'may' nor 'may not'",
                expected=f"{ruled} everywhere",
                got=f"{float(mask[other][0]):.8g} among others",
                because="a finite number shifts a score and forbids nothing",
                help="pass it as `bias`",
            )
        )
    return may


def _require_bool(call: str, name: str, mask: Any) -> None:
    if not library(type(mask)) or namespace(mask).isdtype(mask.dtype, "bool"):
        return  # what is no array at all is :func:`checked`'s business
    if namespace(mask).isdtype(mask.dtype, "real floating"):
        remedy = (
            f"regard.masks.from_hf_additive({name}) if 0 means may attend and the lowest "
            f"number does not;\na float that is added to scores goes to `bias`"
        )
    else:
        remedy = (
            f"regard.masks.from_hf_padding({name}) if 1 means token, for one row of keys an "
            f"example;\n`{name} != 0` if 1 means may attend, `{name} == 0` if 1 means ignore"
        )
    raise MaskError(
        explain(
            f"{call}(): `{name}` is not boolean",
            expected="a boolean array, True = may attend",
            got=f"dtype {mask.dtype}",
            help=remedy,
        )
    )
