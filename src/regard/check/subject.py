"""The user's code, built from its text and run: outputs, or the crash with its lines.

Everything here works on NumPy arrays by name; the conversion to the user's own library
(PyTorch, NumPy or plain lists) happens at one door. A patched text is run the same way, so a
repair is judged by exactly what judged the original.
"""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from regard.check.contract import Contract
from regard.check.conversion import (
    apply,
    as_numpy,
    digest,
    dtype_name,
    flat,
    to_library,
)
from regard.check.draws import held
from regard.check.loading import (
    Crash,
    Loaded,
    TookTooLong,
    crash_of,
    limit,
    load,
    quiet,
    surroundings,
)
from regard.check.parameters import redraw, seed_all
from regard.check.sizes import Sizes

__all__ = [
    "Crash",
    "Instance",
    "Loaded",
    "Outcome",
    "TookTooLong",
    "crash_of",
    "flat",
    "limit",
    "load",
    "quiet",
    "surroundings",
]

Value = Any  # np.ndarray, a number, a list, or a tuple of arrays


@dataclass
class Outcome:
    """What a call returned, as NumPy arrays in float64 (or integers, booleans)."""

    outputs: tuple[np.ndarray | None, ...]
    names: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    mutated: tuple[str, ...] = ()
    printed: int = 0
    raw: Any = field(default=None, repr=False)

    def __getitem__(self, name: str) -> np.ndarray:
        value = self.outputs[self.names.index(name)]
        if value is None:
            raise KeyError(name)
        return value

    def get(self, name: str | None) -> np.ndarray | None:
        """The output of that name, or None where it is absent."""
        if name is None or name not in self.names:
            return None
        index = self.names.index(name)
        return self.outputs[index] if index < len(self.outputs) else None


class Instance:
    """The target built at one set of sizes, ready to be called.

    Parameters of a PyTorch module are drawn anew from their own names, so that two versions
    of a module that name a parameter alike hold the same numbers, and so that zeros at
    initialisation hide nothing.
    """

    def __init__(self, loaded: Loaded, contract: Contract, sizes: Sizes) -> None:
        self.loaded = loaded
        self.contract = contract
        self.sizes = sizes
        self.library = loaded.library
        self.object: Any = None
        self.crash: Crash | None = None
        try:
            self.object = self._build()
        except TookTooLong:
            raise
        except BaseException as error:
            self.crash = crash_of(error, loaded.path, "build")

    def _build(self) -> Any:
        target = self.loaded.target
        if not isinstance(target, type):
            owner = _owner(self.loaded)
            if owner is None:
                return target
            target = owner
        init = {name: self.sizes.value(v) for name, v in self.contract.init.items()}
        seed_all(0)
        with quiet():
            made = target(**init)
            if self.library == "torch" and hasattr(made, "named_parameters"):
                redraw(made)
                # Unlike `to`, these leave complex tables of rotations as they are.
                getattr(made, _CASTS[self.contract.dtype])()
                made.train(self.contract.mode == "train")
        if "." in self.loaded.entry:
            return getattr(made, self.loaded.entry.split(".")[-1])
        return made

    @property
    def module(self) -> Any:
        """The PyTorch module behind the target, or None."""
        owner = getattr(self.object, "__self__", self.object)
        return owner if hasattr(owner, "named_parameters") else None

    def arguments(self, args: Mapping[str, Value]) -> dict[str, Any]:
        """Convert arguments to the user's library, each a fresh copy."""
        return {
            name: to_library(value, self.library, self.contract.dtype)
            for name, value in args.items()
        }

    def call(
        self, args: Mapping[str, Value], *, seed: int = 0, drawn: bool = False
    ) -> Outcome | Crash:
        """Run once and return the outputs, or the crash.

        With ``drawn``, what is stated to be random is drawn and not held at its mean.
        """
        if self.crash is not None:
            return self.crash
        given = self.arguments(args)
        before = {name: digest(value) for name, value in given.items()}
        try:
            raw = self.apply(given, seed=seed, drawn=drawn)
            outputs = tuple(flat(raw))
        except TookTooLong:
            raise
        except BaseException as error:
            return crash_of(error, self.loaded.path, "call")
        names = self.contract.out_names
        if not names:
            names = tuple(f"output {i}" for i in range(len(outputs)))
        mutated = tuple(n for n, value in given.items() if digest(value) != before[n])
        kinds = tuple(dtype_name(o) for o in outputs)
        arrays = tuple(None if o is None else as_numpy(o) for o in outputs)
        return Outcome(arrays, names, kinds, mutated, raw=raw)

    def apply(self, given: dict[str, Any], *, seed: int = 0, drawn: bool = False) -> Any:
        """Call with arguments of the user's library and return the result as it is."""
        seed_all(seed)
        with quiet(), self._no_grad(), contextlib.nullcontext() if drawn else self._held():
            return apply(self.object, given)

    def gradients(
        self, args: Mapping[str, Value], *, seed: int = 0
    ) -> dict[str, np.ndarray | None] | Crash:
        """Gradients of a random weighing of every float output (PyTorch only).

        Keys are ``input:NAME`` and ``param:NAME``; None where nothing flows.
        """
        if self.library != "torch":
            return {}
        if self.crash is not None:
            return self.crash
        import torch  # noqa: PLC0415 - only when the user's code runs on it

        given = self.arguments(args)
        wanted: dict[str, Any] = {}
        for name, value in given.items():
            # What is added to hide keys is huge, and so is its gradient.
            hides = self.contract.kinds.get(name) in _UNLEARNED
            if isinstance(value, torch.Tensor) and value.is_floating_point() and not hides:
                wanted[f"input:{name}"] = value.requires_grad_(True)
        if self.module is not None:
            for name, parameter in self.module.named_parameters():
                if parameter.requires_grad:
                    wanted[f"param:{name}"] = parameter
        seed_all(seed)
        try:
            with quiet(), torch.enable_grad():
                given = {
                    n: v.clone() if isinstance(v, torch.Tensor) and v.requires_grad else v
                    for n, v in given.items()
                }
                with self._held():
                    outputs = list(flat(apply(self.object, given)))
                generator = torch.Generator().manual_seed(5)
                total = None
                for out in outputs:
                    if not isinstance(out, torch.Tensor) or not out.requires_grad:
                        continue
                    weigh = torch.randn(out.shape, generator=generator).to(out.dtype)
                    # Zero weights meet -inf log-weights as 0 * inf; leave those out.
                    part = torch.where(torch.isfinite(out), out * weigh, 0.0).sum()
                    total = part if total is None else total + part
                if total is None:
                    return dict.fromkeys(wanted)
                found = torch.autograd.grad(total, list(wanted.values()), allow_unused=True)
        except TookTooLong:
            raise
        except BaseException as error:
            return crash_of(error, self.loaded.path, "call")
        return {
            name: None if g is None else g.detach().double().numpy()
            for name, g in zip(wanted, found, strict=True)
        }

    def _held(self) -> Any:
        """Draws at their means, where the contract states them and training makes none."""
        if not self.contract.random or self.contract.mode == "train":
            return contextlib.nullcontext()
        return held(self.loaded.module, getattr(self.object, "__self__", self.object))

    def _no_grad(self) -> Any:
        if self.library != "torch":
            return contextlib.nullcontext()
        import torch  # noqa: PLC0415

        return torch.no_grad()


_CASTS = {"float16": "half", "bfloat16": "bfloat16", "float32": "float", "float64": "double"}
_UNLEARNED = ("keep_float01", "drop_float01", "additive")


def _owner(loaded: Loaded) -> type | None:
    """The class of a ``Class.method`` entry."""
    parts = loaded.entry.split(".")
    if len(parts) < 2:
        return None
    owner = getattr(loaded.module, parts[0], None)
    return owner if isinstance(owner, type) else None
