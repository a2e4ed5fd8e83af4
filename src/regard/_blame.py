"""Whom to blame when arguments do not fit: the slow half of :func:`regard.axes.checked`.

It runs only after the fast check has failed, and decides by vote: the size that most arguments
agree on is right, a tie goes to the earlier argument. A culprit whose transpose would mend
everything is named before others.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from regard.errors import BackendError, MaskError, RegardError, ShapeError, explain

__all__ = ["Argument", "Built", "Given", "diagnose"]

_SAID = {
    "float": "a floating-point array",
    "bool": "a boolean array",
    "int": "an integer array",
}


class Argument(NamedTuple):
    """One array argument of a checked function, as its annotation states it."""

    name: str
    kind: str  # float, bool or int
    leading: str  # name of the ``*batch`` axes, or "" where there are none
    axes: tuple[str, ...]  # the named axes behind them; "d_s+d_h" is a sum of two
    position: int  # in the call; -1 when keyword-only
    lists: bool  # nested lists are welcome too
    optional: bool = True  # None is welcome too

    def stated(self, sizes: Mapping[str, Any] | None = None) -> str:
        """Return ``U_a (d_attn=13, d_h)``: the annotation, with the sizes that are known."""
        known = sizes or {}
        leading = [f"*{self.leading}"] * bool(self.leading)
        axes = [f"{axis}={known[axis]}" if axis in known else axis for axis in self.axes]
        return f"{self.name} {_tuple([*known.get(''.join(leading), leading), *axes])}"


class Given(NamedTuple):
    """An argument and what was passed for it."""

    argument: Argument
    type_name: str
    home: str  # the array's library, "lists" for nested lists, "" where it is neither
    kind: str = ""
    dtype: Any = None
    shape: tuple[int, ...] = ()
    device: str = ""  # "" where the library's arrays may meet whatever their devices

    @property
    def name(self) -> str:
        """The argument's name."""
        return self.argument.name


class Built(NamedTuple):
    """What a module's construction fixed; it is right whatever the arguments say."""

    sizes: Mapping[str, int] = MappingProxyType({})
    dtype: Any = None


_NOTHING = Built()

ON_LISTS = ("additive", "attend", "concat", "dot", "general", "multi_head", "scaled_dot")
"""What takes arrays alone and has a namesake in the reference that takes nested lists."""


def diagnose(function: str, given: Sequence[Given], built: Built = _NOTHING) -> RegardError:
    """Return the error that names the argument at fault in a call of `function`."""
    return (
        _no_array(function, given)
        or _wrong_kind(function, given)
        or _wrong_library(function, given)
        or _wrong_device(function, given)
        or _wrong_rank(function, given)
        or _wrong_number_of_axes(function, given, built)
        or _wrong_size(function, given, built)
        or _wrong_number_type(function, given, built)
        # Reached only if the fast check refuses what all of these accept: a defect of ours.
        or BackendError(f"{function}(): its arguments do not fit: {[g.name for g in given]}")
    )


def _no_array(function: str, given: Sequence[Given]) -> RegardError | None:
    for one in given:
        if one.home and (one.home != "lists" or one.argument.lists):
            continue
        remedy = "numpy.asarray(...) turns nested lists into an array"
        if function in ON_LISTS and all(other.home == "lists" for other in given):
            remedy = (
                f"regard.reference.{function}(...) computes nested lists, one example at a "
                f"time;\n{remedy}"
            )
        return BackendError(
            explain(
                f"{function}(): `{one.name}` is no array",
                expected=f"{_SAID[one.argument.kind]} {one.argument.stated()}",
                got="None" if one.type_name == "NoneType" else one.type_name,
                help=remedy if one.home == "lists" else None,
            )
        )
    return None


def _wrong_kind(function: str, given: Sequence[Given]) -> RegardError | None:
    for one in given:
        wanted = one.argument.kind
        if one.kind == wanted:
            continue
        what = f"{function}(): `{one.name}` is not {_SAID[wanted]}"
        expected = f"{_SAID[wanted]} {one.argument.stated()}"
        got = f"dtype {one.dtype}"
        if wanted != "bool":
            remedy = "convert the integers to floats first" if one.kind == "int" else None
            return BackendError(explain(what, expected=expected, got=got, help=remedy))
        remedy = (
            f"`{one.name} != 0` if 1 means may attend, `{one.name} == 0` if 1 means padding"
        )
        if one.kind == "float":
            remedy = (
                "`regard.masks.from_torch_mha` and `from_hf_additive` convert masks of 0 and "
                "-inf;\nother numbers to be added to scores are a bias, not a mask"
            )
        because = "a mask is True where a query may attend"
        return MaskError(
            explain(what, expected=expected, got=got, because=because, help=remedy)
        )
    return None


def _wrong_library(function: str, given: Sequence[Given]) -> RegardError | None:
    first = given[0]
    for one in given:
        if one.home != first.home:
            return BackendError(
                explain(
                    f"{function}(): `{one.name}` and `{first.name}` are of different libraries",
                    expected=f"`{one.name}` from {first.home}",
                    got=f"`{one.name}` from {one.home}",
                    because=f"`{first.name}` is from {first.home}",
                )
            )
    return None


def _wrong_device(function: str, given: Sequence[Given]) -> RegardError | None:
    devices = [one.device for one in given if one.device]
    for one in given:
        right = max(devices, key=devices.count) if devices else ""
        if one.device and one.device != right:
            other = next(each for each in given if each.device == right)
            return BackendError(
                explain(
                    f"{function}(): `{one.name}` and `{other.name}` are on different devices",
                    expected=f"`{one.name}` on {right}",
                    got=f"`{one.name}` on {one.device}",
                    because=f"`{other.name}` is on {right}",
                    help="move one of them: nothing is moved silently",
                )
            )
    return None


def _wrong_number_type(
    function: str, given: Sequence[Given], built: Built
) -> RegardError | None:
    floats = [one for one in given if one.argument.kind == "float"]
    for one in floats:
        right = floats[0].dtype if built.dtype is None else built.dtype
        source = (
            f"`{floats[0].name}` has" if built.dtype is None else "the module's parameters have"
        )
        if one.dtype != right:
            other = f"`{floats[0].name}`" if built.dtype is None else "the module"
            return BackendError(
                explain(
                    f"{function}(): `{one.name}` and {other} differ in number type",
                    expected=f"`{one.name}` of dtype {right}",
                    got=f"`{one.name}` of dtype {one.dtype}",
                    because=f"{source} dtype {right}",
                    help="convert one of them: nothing is promoted silently",
                )
            )
    return None


def _wrong_rank(function: str, given: Sequence[Given]) -> RegardError | None:
    for one in given:
        axes, named, rank = one.argument.axes, len(one.argument.axes), len(one.shape)
        if rank == named or (rank > named and one.argument.leading):
            continue
        remedy = None
        if named - rank == 1 and axes[0] in ("T_dec", "T_enc"):
            remedy = f"one step is {axes[0]} = 1: add that axis, none is squeezed away"
        wanted = f"at least {named}" if one.argument.leading else f"{named}"
        return ShapeError(
            explain(
                f"{function}(): `{one.name}` has {_axes(rank)}, not {wanted}",
                expected=one.argument.stated(),
                got=f"{one.name} {_tuple(one.shape)}",
                help=remedy,
            )
        )
    return None


def _wrong_number_of_axes(
    function: str, given: Sequence[Given], built: Built
) -> RegardError | None:
    """Say that an axis is missing, where reading on would only find sizes that differ."""
    led = [one for one in given if one.argument.leading]
    ranks = [_rank(one) for one in led]
    if len(set(ranks)) < 2:
        return None
    # The number that most have is right. Between equals it is the greater, since an axis is
    # forgotten more often than added; but an axis of size 1 is one that somebody added.
    tied = [rank for rank in set(ranks) if ranks.count(rank) == max(map(ranks.count, ranks))]
    right = max(tied)
    longest = next(one for one in led if _rank(one) == max(ranks))
    if len(tied) > 1 and _leading(longest)[-1] == 1:
        right = min(tied)
    one = next(each for each in led if _rank(each) != right)
    other = next(each for each in led if _rank(each) == right)
    sizes, _ = _agree([each for each in given if each is not one], built)
    rank = len(one.argument.axes) + right
    return ShapeError(
        explain(
            f"{function}(): `{one.name}` has {_axes(len(one.shape))}, not {rank}",
            expected=one.argument.stated(sizes),
            got=f"{one.name} {_tuple(one.shape)}",
            because=f"`{other.name}` {_tuple(other.shape)} has {_axes(right)} before its "
            f"{' and '.join(other.argument.axes)}"
            if other.argument.axes
            else f"`{other.name}` {_tuple(other.shape)} has {_axes(right)}",
            help=_missing_step(one, sizes),
        )
    )


def _missing_step(one: Given, sizes: Mapping[str, Any]) -> str | None:
    """Return how to mend a state without its axis of steps, if adding that axis would do."""
    step = next(iter(one.argument.axes), "")
    fits = one.shape[:-1] == sizes["*" + one.argument.leading]
    if step not in ("T_dec", "T_enc") or not fits or sizes.get(step, 1) != 1:
        return None
    return f"one step is {step} = 1: add that axis, none is squeezed away"


def _leading(one: Given) -> tuple[int, ...]:
    return one.shape[: len(one.shape) - len(one.argument.axes)]


def _rank(one: Given) -> int:
    return len(_leading(one))


def _axes(number: int) -> str:
    return f"{number} {'axis' if number == 1 else 'axes'}"


def _wrong_size(function: str, given: Sequence[Given], built: Built) -> RegardError | None:
    right, source = _agree(given, built)
    wrong = [
        (one, axis)
        for one in given
        for axis, size in _sizes(one.argument, one.shape).items()
        if axis in right and size != right[axis]
    ]
    if not wrong:
        return None
    one, axis = min(wrong, key=lambda pair: not _transpose_fits(pair[0], right))
    expected = one.argument.stated(right)
    because = f"{axis.lstrip('*')} = {right[axis]} comes from {source[axis]}"
    if axis in built.sizes:
        because = f"the module was built with {axis} = {right[axis]}"
    if "+" in axis:
        parts = " + ".join(f"{part} ({right[part]})" for part in axis.split("+"))
        because = f"{parts} = {right[axis]}"
    remedy = None
    if _transpose_fits(one, right):
        remedy = f"the transpose of `{one.name}` would fit"
    return ShapeError(
        explain(
            f"{function}(): `{one.name}` does not fit {source[axis]} "
            f"on axis {axis.lstrip('*')}",
            expected=expected,
            got=f"{one.name} {_tuple(one.shape)}",
            because=because,
            help=remedy,
        )
    )


def _agree(given: Sequence[Given], built: Built) -> tuple[dict[str, Any], dict[str, str]]:
    """Return each axis' right size, and where it comes from."""
    claims: dict[str, list[tuple[Any, Given]]] = {}
    for one in given:
        for axis, size in _sizes(one.argument, one.shape).items():
            claims.setdefault(axis, []).append((size, one))
    right: dict[str, Any] = dict(built.sizes)
    source = dict.fromkeys(right, "the module")
    for axis, found in claims.items():
        if axis in right:
            continue
        sizes = [size for size, _ in found]
        right[axis] = max(sizes, key=sizes.count)  # the first of equals
        source[axis] = next(f"`{one.name}`" for size, one in found if size == right[axis])
    for axis in [axis for axis in claims if "+" in axis]:
        parts = axis.split("+")
        if not right.keys() >= set(parts):  # the argument that has a part is left out
            del right[axis], source[axis]
            continue
        right[axis] = sum(right[part] for part in parts)
        source[axis] = source[parts[0]]
    return right, source


def _sizes(argument: Argument, shape: tuple[int, ...]) -> dict[str, Any]:
    rest = len(shape) - len(argument.axes)
    leading = {"*" + argument.leading: shape[:rest]} if argument.leading else {}
    return {**leading, **dict(zip(argument.axes, shape[rest:], strict=True))}


def _transpose_fits(one: Given, right: dict[str, Any]) -> bool:
    if len(one.argument.axes) != 2 or one.shape[-1] == one.shape[-2]:
        return False
    turned = _sizes(one.argument, (*one.shape[:-2], one.shape[-1], one.shape[-2]))
    return all(right[axis] == size for axis, size in turned.items())


def _tuple(items: Sequence[Any]) -> str:
    inner = ", ".join(str(item) for item in items)
    return f"({inner},)" if len(items) == 1 else f"({inner})"
