"""Why two equal calls of a case differ: what is found in it, and nothing guessed.

Three things are looked at: the modes and dropouts of PyTorch modules within the case's reach,
the random operations that run when it is asked, and whether the seed of a common generator
makes two calls equal.
"""

import random
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from regard.audit.reach import modules_of

__all__ = ["what_is_random"]

Ask = Callable[[], Sequence[Any]]
"""Asks the case, always the same; returns arrays."""

_NAMED = 4
_SAME = 1e-5


def what_is_random(case: object, ask: Ask) -> str:
    """Return what was found, as clauses of one sentence.

    Parameters
    ----------
    case : object
    ask : callable
        A call whose answers differ from one time to the next; it is made a few times more.
    """
    modules = modules_of(case)
    training = {name: module for name, module in modules.items() if module.training}
    drawn = _operations(modules, ask) if "torch" in sys.modules else []
    seeded = _seeded(ask)
    found = []
    if training:
        found.append(f"in training mode: {_listed(_titles(training))}")
    elif modules:
        found.append("every module found is in evaluation mode")
    if drawn:
        found.append(f"random operations ran: {_listed(drawn)}")
    if seeded:
        found.append(f"with {seeded} seeded alike before each call they are equal")
    elif not drawn:
        found.append(
            "no seed of a common generator makes them equal: the case draws from one of its "
            "own, or remembers what it was asked"
        )
    if training:
        found.append("model.eval() belongs before predict() and weights()")
    elif drawn and modules:
        found.append("a functional dropout needs training=self.training")
    return "; ".join(found)


def _titles(training: Mapping[str, Any]) -> list[str]:
    """Return the names of those that drop something, and how many others; else of all."""
    dropping = {name: module for name, module in training.items() if _drops(module)}
    found = []
    for name, module in (dropping or training).items():
        rate = _drops(module)
        kind = f"{type(module).__name__}{f', dropout {rate:g}' if rate else ''}"
        found.append(f"{f'`{name}`' if name else 'the model itself'} ({kind})")
    others = len(training) - len(found)
    return [*found, f"{others} without dropout"] if others else found


def _drops(module: Any) -> float:
    for name in ("p", "dropout"):
        rate = getattr(module, name, None)
        if isinstance(rate, float | int) and 0 < rate <= 1:
            return float(rate)
    return 0.0


def _operations(modules: Mapping[str, Any], ask: Ask) -> list[str]:
    """Return the random operations of PyTorch that run, and in which modules."""
    torch: Any = import_module("torch")
    dispatch: Any = import_module("torch.utils._python_dispatch")
    running: list[str] = []
    found: dict[str, None] = {}

    class Watch(dispatch.TorchDispatchMode):  # type: ignore[misc]  # a class all the same
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if torch.Tag.nondeterministic_seeded in func.tags:
                where = f" in `{running[-1]}`" if running and running[-1] else ""
                found[f"{str(func.overloadpacket).rpartition('.')[2]}{where}"] = None
            return func(*args, **(kwargs or {}))

    handles = []
    for name, module in modules.items():

        def begin(module: Any, args: Any, name: str = name) -> None:
            running.append(name)

        def end(module: Any, args: Any, output: Any) -> None:
            running.pop()

        handles.append(module.register_forward_pre_hook(begin))
        handles.append(module.register_forward_hook(end, always_call=True))
    try:
        with Watch():
            ask()
    finally:
        for handle in handles:
            handle.remove()
    return list(found)


def _seeded(ask: Ask) -> str:
    """Return the generator whose seed makes two calls equal, "" for none."""
    common: list[tuple[str, Callable[[Ask], Sequence[Any]]]] = [
        ("NumPy's own generator", _with_numpy),
        ("Python's `random`", _with_random),
    ]
    if "torch" in sys.modules:
        common.insert(0, ("PyTorch's generator", _with_torch))
    return next((name for name, call in common if _alike(call(ask), call(ask))), "")


def _alike(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return all(
        x.shape == y.shape and float(np.abs(x - y).max(initial=0.0)) <= _SAME
        for x, y in zip(one, other, strict=True)
    )


def _with_torch(ask: Ask) -> Sequence[Any]:
    torch: Any = import_module("torch")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return ask()


def _with_numpy(ask: Ask) -> Sequence[Any]:
    kept = np.random.get_state()  # noqa: NPY002 - the one that a user's code may draw from
    try:
        np.random.seed(0)  # noqa: NPY002
        return ask()
    finally:
        np.random.set_state(kept)  # noqa: NPY002


def _with_random(ask: Ask) -> Sequence[Any]:
    kept = random.getstate()
    try:
        random.seed(0)
        return ask()
    finally:
        random.setstate(kept)


def _listed(parts: Sequence[str]) -> str:
    rest = len(parts) - _NAMED
    return ", ".join(parts[:_NAMED]) + (f" and {rest} more" if rest > 0 else "")
