"""Axis names, and the check that holds every function to them.

One name an axis, everywhere: in annotations, docstrings, error texts and figures.

==========  ===========================================================  ==================
name        meaning                                                      in the papers
==========  ===========================================================  ==================
``batch``   examples; ``*batch`` is any number of leading axes
``T_dec``   queries: decoder steps                                       t, i
``T_enc``   keys: encoder states                                         s, j, T_x
``d_s``     size of a query: the decoder state                           n
``d_h``     size of a key: the encoder state (2n if bidirectional)       2n
``d_v``     size of a value; ``d_h`` in the classical case
``d_attn``  size of the space where an additive score compares           n'
``heads``   parallel attentions                                          h
``d_head``  size of one head's query or key                              d_k
==========  ===========================================================  ==================

:func:`checked` reads the jaxtyping annotations of a function, so documentation, types and the
run-time check are one text. Nothing is broadcast: an axis of size 1 does not fit one of size 5.
"""

import functools
import importlib
import inspect
import typing
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

from regard._blame import Argument, Given, diagnose
from regard.errors import ShapeError, explain

__all__ = [
    "Array",
    "Nested",
    "checked",
    "describe",
    "device_of",
    "kind_of",
    "library",
    "namespace",
    "nested_shape",
]

Array: TypeAlias = Any
"""An array of any array-API library: NumPy, PyTorch, JAX, array-api-strict."""

Nested: TypeAlias = list[Any]
"""Nested lists of Python floats, as :mod:`regard.attention.reference` takes them."""

_F = TypeVar("_F", bound=Callable[..., Any])
_LIBRARIES = {
    "numpy": "NumPy",
    "torch": "PyTorch",
    "jax": "JAX",
    "jaxlib": "JAX",
    "array_api_strict": "array-api-strict",
}
_KINDS = {"Float": "float", "Bool": "bool", "Integer": "int"}
_KINDS_OF: dict[str, dict[Any, str]] = {}
_HOMES: dict[type, str] = {}
_NAMESPACES: dict[str, Any] = {}
_PLACED: set[type] = set()
"""PyTorch's types: their arrays refuse to meet one on another device."""

_REMEMBERED = 10_000


class _Mismatch(Exception):  # noqa: N818 - never leaves this module
    """Raised by the fast check; the slow path then works out whom to blame."""


def checked(function: _F) -> _F:
    """Check every array argument against its annotation before the function runs.

    The annotations are jaxtyping's (``Float[Array, "*batch T_dec d_s"]``); ``| None`` makes an
    argument optional and ``| Nested`` lets it be nested lists. Axes of one name must have one
    size across all arguments, all arrays must come from one library and lie on one device, and
    floating-point arguments must share one number type. Devices are checked for
    PyTorch; the other libraries have their own rules and errors.

    Parameters
    ----------
    function : callable
        With jaxtyping annotations on its array arguments.

    Returns
    -------
    function : callable
        The same, checked. The call raises ShapeError where an axis has two sizes or an argument
        the wrong number of axes; MaskError where a mask is not boolean; BackendError where
        something is no array, or comes from another library, lies on another device or has
        another number type.
    """
    arguments = _read(function)
    names = {argument.name for argument in arguments}
    positions = [argument.position for argument in arguments if argument.position >= 0]
    seen: set[Any] = set()

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        # Whether arguments fit depends on their types, shapes and number types alone, and a
        # program calls with few of those: what fitted once is let through at a glance.
        given = [name for name in kwargs if name in names]
        glance = [_look(args[at]) for at in positions if at < len(args)]
        glance += [_look(kwargs[name]) for name in given]
        key = (*glance, *given)
        try:
            known = key in seen
        except TypeError:  # sizes that an exporter leaves open have no hash
            known, glance = False, [None]
        if not known:
            try:
                _fits(arguments, args, kwargs)
            except _Mismatch:
                pairs = _passed(arguments, args, kwargs)
                told = [describe(argument, value) for argument, value in pairs]
                raise diagnose(function.__name__, told) from None
            if len(seen) < _REMEMBERED and None not in glance:
                seen.add(key)
        return function(*args, **kwargs)

    return typing.cast(_F, call)


def nested_shape(value: Any, name: str = "value") -> tuple[int, ...]:
    """Return the shape of nested lists: ``[[1, 2, 3], [4, 5, 6]]`` has shape ``(2, 3)``.

    Raises
    ------
    ShapeError
        Two lists at one level have different lengths; the text names the place.
    """
    if not isinstance(value, list | tuple):
        return ()
    shapes = [nested_shape(item, name) for item in value]
    for index, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ShapeError(
                explain(
                    f"`{name}` is ragged: its rows differ in length",
                    expected=f"every row of shape {shapes[0]}, as row 0",
                    got=f"row {index} of shape {shape}",
                    help="pad the short rows and mask the padding",
                )
            )
    return (len(value), *(shapes[0] if shapes else ()))


def library(kind: type) -> str:
    """Return the name of the library that a type of array belongs to, "" if it is none.

    >>> library(list)
    ''
    """
    if kind not in _HOMES:
        # A user's subclass counts as the library it extends.
        roots = [base.__module__.partition(".")[0] for base in kind.__mro__]
        known = [_LIBRARIES[root] for root in roots if root in _LIBRARIES]
        _HOMES[kind] = known[0] if known and hasattr(kind, "shape") else ""
        if _HOMES[kind] == "PyTorch":
            _PLACED.add(kind)
    return _HOMES[kind]


def namespace(array: Array | None) -> Any:
    """Return the array-API namespace of an array; NumPy's for None.

    NumPy and PyTorch come in the form of array-api-compat, which gives both the standard names.
    """
    home = "NumPy" if array is None else library(type(array))
    if home not in _NAMESPACES:
        _NAMESPACES[home] = _load(home)
    return _NAMESPACES[home]


def device_of(array: Array | None) -> Any:
    """Return the device of an array as its library's functions take it; None for None."""
    if array is None:
        return None
    if library(type(array)) == "PyTorch":
        return array.device  # torch.compile cannot trace the other way without warnings
    from array_api_compat import device  # noqa: PLC0415 - only for arrays that have one

    return device(array)


def _load(home: str) -> Any:
    if home == "PyTorch":
        # A statement, which torch.compile can trace; a call of import_module it cannot.
        import array_api_compat.torch as xp  # noqa: PLC0415 - only where there are tensors

        return xp
    modules = {"NumPy": "array_api_compat.numpy", "JAX": "jax.numpy"}
    return importlib.import_module(modules.get(home, "array_api_strict"))


def _read(function: Callable[..., Any]) -> tuple[Argument, ...]:
    hints = typing.get_type_hints(function)
    found = []
    for position, parameter in enumerate(inspect.signature(function).parameters.values()):
        hint = hints.get(parameter.name)
        options = typing.get_args(hint) or (hint,)
        annotated = [option for option in options if hasattr(option, "dim_str")]
        if not annotated:
            continue
        axes = annotated[0].dim_str.split()
        leading = axes.pop(0)[1:] if axes and axes[0].startswith("*") else ""
        positional = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        found.append(
            Argument(
                parameter.name,
                kind=_KINDS[annotated[0].__name__.partition("[")[0]],
                leading=leading,
                axes=tuple(axes),
                position=position if positional else -1,
                lists=Nested in options,
                optional=type(None) in options,
            )
        )
    return tuple(found)


def _look(value: Any) -> tuple[Any, ...] | None:
    """Return what a check depends on; None for what, as nested lists, shows it only inside."""
    if value is None:
        return ()
    kind = value.__class__
    try:
        if kind in _PLACED:
            # Comparing a flag is cheaper than comparing a device, and most are the CPU.
            return (kind, value.shape, value.dtype, value.is_cpu or value.device)
        return (kind, value.shape, value.dtype)
    except AttributeError:
        return None


def _passed(
    arguments: Sequence[Argument], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[tuple[Argument, Any]]:
    for argument in arguments:
        if 0 <= argument.position < len(args):
            value = args[argument.position]
        elif argument.name in kwargs:
            value = kwargs[argument.name]
        else:
            # A missing required argument is Python's own TypeError, which names it.
            continue
        if value is not None or not argument.optional:
            yield argument, value


def _fits(  # noqa: PLR0912 - one loop, so that a call costs microseconds
    arguments: Sequence[Argument], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Raise _Mismatch at the first thing that does not fit; cheap, and says nothing."""
    sizes: dict[str, Any] = {}
    dtype = home = device = None
    for argument, value in _passed(arguments, args, kwargs):
        where = library(type(value))
        if where:
            shape = value.shape
            if _kind(where, value.dtype) != argument.kind:
                raise _Mismatch
            if argument.kind == "float":
                dtype = value.dtype if dtype is None else dtype
                if value.dtype != dtype:
                    raise _Mismatch
            if where == "PyTorch":
                device = value.device if device is None else device
                if value.device != device:
                    raise _Mismatch
        elif argument.lists and isinstance(value, list | tuple):
            where, shape = "lists", nested_shape(value, argument.name)
            if not _holds(value, argument.kind):
                raise _Mismatch
        else:
            raise _Mismatch
        home = home or where
        rest = len(shape) - len(argument.axes)
        if where != home or rest < 0 or (rest and not argument.leading):
            raise _Mismatch
        if (
            argument.leading
            and sizes.setdefault(argument.leading, shape[:rest]) != shape[:rest]
        ):
            raise _Mismatch
        for axis, size in zip(argument.axes, shape[rest:], strict=True):
            if "+" in axis:
                # The parts of a sum stand in earlier arguments.
                if sum(sizes[part] for part in axis.split("+")) != size:
                    raise _Mismatch
            elif sizes.setdefault(axis, size) != size:
                raise _Mismatch


def kind_of(array: Array) -> str:
    """Return "float", "bool", "int", or the name of another number type."""
    return _kind(library(type(array)), array.dtype)


def describe(argument: Argument, value: Any) -> Given:
    """Return what an error text needs to know of an argument that was passed."""
    home = library(type(value))
    if home:
        kind, shape = _kind(home, value.dtype), tuple(value.shape)
        device = str(value.device) if home == "PyTorch" else ""
        return Given(argument, type(value).__name__, home, kind, value.dtype, shape, device)
    if isinstance(value, list | tuple):
        shape = nested_shape(value, argument.name)
        kind, inside = argument.kind, None
        if argument.lists and not _holds(value, kind):
            leaf = next(leaf for leaf in _leaves(value) if not _is(leaf, kind))
            inside = f"{type(leaf).__name__} in a list"
            kind = next((k for k in ("bool", "int", "float") if _is(leaf, k)), "other")
        return Given(argument, type(value).__name__, "lists", kind, inside, shape)
    return Given(argument, type(value).__name__, "")


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _holds(value: Any, kind: str) -> bool:
    return all(_is(leaf, kind) for leaf in _leaves(value))


def _is(leaf: Any, kind: str) -> bool:
    if kind == "bool":
        return isinstance(leaf, bool)
    # Whole numbers are welcome where floats are due: [1, 0, 0.2] is how people write.
    number = int if kind == "int" else int | float
    return isinstance(leaf, number) and not isinstance(leaf, bool)


def _kind(home: str, dtype: Any) -> str:
    # One table a library: dtypes of two can share a hash, and some warn when compared.
    known = _KINDS_OF.setdefault(home, {})
    if dtype not in known:
        text = str(dtype)
        known[dtype] = next((kind for kind in ("float", "bool", "int") if kind in text), text)
    return known[dtype]
