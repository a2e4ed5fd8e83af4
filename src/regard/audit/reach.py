"""The PyTorch modules that a case can reach: its own, and those that its functions use."""

import functools
import sys
import types
from collections.abc import Iterator
from itertools import islice
from typing import Any

__all__ = ["modules_of", "parameters_with_nan"]

_DEEP = 5  # from a case to its functions, to theirs, to a module
_WIDE = 50  # parts of one list that are looked at
_LIBRARIES = frozenset({"builtins", "numpy", "torch", "transformers", "regard"})


def modules_of(case: object) -> dict[str, Any]:
    """Return the modules by their names, "" for a whole model; none where PyTorch is not used.

    Parameters
    ----------
    case : object
        Looked through without running anything: attributes, and what functions enclose or name.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    found: dict[str, Any] = {}
    for top in _reached(case, torch.nn.Module):
        for name, module in top.named_modules():
            if all(module is not other for other in found.values()):
                found.setdefault(name, module)
    return found


def parameters_with_nan(case: object) -> list[str]:
    """Return the names of a case's PyTorch parameters that hold NaN."""
    return [
        f"{name}.{own}".lstrip(".")
        for name, module in modules_of(case).items()
        for own, parameter in module.named_parameters(recurse=False)
        if bool(parameter.isnan().any())
    ]


def _reached(case: object, wanted: type) -> Iterator[Any]:
    waiting: list[tuple[Any, int]] = [(case, 0)]
    seen: set[int] = set()
    while waiting:
        one, depth = waiting.pop(0)
        if id(one) in seen or isinstance(one, type | types.ModuleType):
            continue
        seen.add(id(one))
        if isinstance(one, wanted):
            yield one
        elif depth < _DEEP:
            waiting += [(part, depth + 1) for part in _parts(one, near=depth <= 1)]


def _parts(one: Any, *, near: bool) -> list[Any]:
    if isinstance(one, dict | list | tuple):
        return list(islice(one.values() if isinstance(one, dict) else one, _WIDE))
    if isinstance(one, functools.partial):
        return [one.func, *one.args, *one.keywords.values()]
    if isinstance(one, types.MethodType):
        return [one.__func__, one.__self__]
    home = one.__module__ if isinstance(one, types.FunctionType) else type(one).__module__
    # A library's functions and objects lead everywhere; the case's own are the adapters'.
    if not near and str(home).partition(".")[0] in _LIBRARIES:
        return []
    if isinstance(one, types.FunctionType):
        known = one.__globals__
        used = [known[name] for name in _names(one.__code__) if name in known]
        return [*_enclosed(one), *used]
    kept = getattr(one, "__dict__", None)
    return list(kept.values()) if isinstance(kept, dict) else []


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _enclosed(function: types.FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # the name was never given a value
            continue
