"""What comes back: as many results as declared, with the declared axes, also at size one."""

import numpy as np

from regard.check.finding import Measurement
from regard.check.relations.base import Bench, Verdict, fails, holds, relation
from regard.check.sizes import Sizes
from regard.check.subject import Crash

__all__ = ["declared_axes", "finite", "inputs_kept", "number_type", "unit_sizes"]


@relation("declared-axes", "every result has the axes that were declared", cost=0)
def declared_axes(bench: Bench) -> Verdict | None:
    """Compare the shapes of the plain run with the declared axes."""
    if not bench.contract.returns:
        return None
    outputs, returns = bench.out.outputs, bench.contract.returns
    if len(outputs) < len(returns):
        return fails(
            "RG104",
            f"{len(outputs)} results come back where {len(returns)} are declared",
            depends_on=("returns",),
        )
    for array, returned in zip(outputs, returns, strict=False):
        expected = bench.sizes.shape(returned.axes)
        if array is None or tuple(array.shape) != expected:
            shown = "nothing" if array is None else _named(array, returned.axes, bench.sizes)
            wanted = f"({', '.join(returned.axes.split())})"
            return fails(
                "RG104",
                f"`{returned.name}` comes back as {shown}; declared {wanted}",
                about=returned.name,
                measured=(
                    Measurement(
                        f"shape of {returned.name}",
                        "none" if array is None else str(tuple(array.shape)),
                        f"must be {expected}",
                    ),
                ),
                depends_on=("returns",),
            )
    return holds()


@relation("results-finite", "no result holds NaN or an unasked infinity", cost=0)
def finite(bench: Bench) -> Verdict | None:
    """Look for NaN and infinity in the plain run."""
    roles = {r.name: r.role for r in bench.contract.returns}
    for name, array in zip(bench.out.names, bench.out.outputs, strict=False):
        if array is None or not np.issubdtype(array.dtype, np.floating):
            continue
        bad = np.isnan(array)
        if roles.get(name) != "log_weights":
            bad = bad | np.isinf(array)
        if bad.any():
            half = bench.contract.dtype in ("float16", "bfloat16")
            share = float(bad.mean())
            return fails(
                "RG601" if half else "RG602",
                f"`{name}` is not finite on inputs of order one",
                about=name,
                measured=(Measurement(f"{name} not finite", f"{share:.0%}", "must be 0%"),),
            )
    return holds()


@relation("axes-at-size-one", "an axis of size 1 stays an axis", everywhere=False, cost=4)
def unit_sizes(bench: Bench) -> Verdict | None:
    """Run with one example, one query, one key: the declared axes stay."""
    if not bench.contract.returns:
        return None
    for axis in ("batch", "T_dec", "T_enc", "T"):
        if axis not in bench.contract.every_axis or axis in bench.contract.sizes:
            continue
        small = bench.case.bench(bench.sizes.which, **{axis: 1})
        base = small.base
        if isinstance(base, Crash):
            if _asks_for_more(bench, base):
                continue
            return fails(
                "RG105",
                f"with {axis} = 1 the code raises {base.kind}",
                lines=tuple(reversed(base.lines)),
                quote=base.message,
                about=axis,
                hidden=f"the code runs while {axis} > 1",
                sizes=small.sizes.shown(bench.contract.every_axis),
            )
        for array, returned in zip(base.outputs, bench.contract.returns, strict=False):
            expected = small.sizes.shape(returned.axes)
            if array is None or tuple(array.shape) != expected:
                shape = None if array is None else tuple(array.shape)
                return fails(
                    "RG105",
                    f"with {axis} = 1 `{returned.name}` loses or moves an axis: it comes back "
                    f"as {shape}, declared {expected}",
                    about=returned.name,
                    hidden=f"the axes are right while {axis} > 1",
                    sizes=small.sizes.shown(bench.contract.every_axis),
                )
    return holds()


def _asks_for_more(bench: Bench, crash: Crash) -> bool:
    """Whether an argument that is a number, as the keys to keep, is above an axis of size 1."""
    numbers = [v for v in bench.probe.args.values() if isinstance(v, int) and v > 1]
    return bool(numbers) and "out of range" in crash.message


@relation("inputs-kept", "a call leaves its arguments as they were", cost=0)
def inputs_kept(bench: Bench) -> Verdict | None:
    """Compare the arguments after the call with those before."""
    changed = bench.out.mutated
    if not changed:
        return holds()
    return fails(
        "RG803",
        f"the call changes its argument `{changed[0]}` in place",
        about=changed[0],
        hidden="the first result is right; the caller's next use of the argument is not",
    )


@relation("number-type-kept", "results have the number type of the inputs", strict=True, cost=0)
def number_type(bench: Bench) -> Verdict | None:
    """Compare the results' number types with the declared one."""
    declared = bench.contract.dtype
    for name, kind in zip(bench.out.names, bench.out.dtypes, strict=False):
        is_float = kind.startswith(("float", "bfloat"))
        if is_float and bench.instance.library == "torch" and kind != declared:
            return fails("RG603", f"`{name}` is {kind}; the inputs are {declared}", about=name)
    return holds()


def _named(array: np.ndarray, axes: str, sizes: Sizes) -> str:
    """Axes of an array read from its sizes, declared names first."""
    names = list(dict.fromkeys(axes.split()))
    table = {int(sizes.value(t)): t for t in reversed(names)}
    for name in sizes:
        table.setdefault(sizes[name], name)
    if array.dtype == object:
        return "rows of different lengths"
    return "(" + ", ".join(table.get(n, str(n)) for n in array.shape) + ")"
