"""One way to ask a class: the text of its wrapper, and what is declared about it."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from real_code.reading import Said

__all__ = ["OWN", "Asked", "Way", "cross", "own"]

_TEXT = '''"""{name} of {module}, small."""

import torch
from torch import nn
from torch.nn import functional as F

from real_code.tiny import shrink
{imports}

LOWEST = torch.finfo(torch.float32).min


class Wrapped(nn.Module):
    def __init__(self, {init}):
        super().__init__()
{build}

    def forward(self, {arguments}):
{call}
'''
OWN: Mapping[str, Any] = {
    "init": {"d_model": "d_model", "heads": "heads", "d_head": "d_head"},
    "inputs": {"hidden_states": "batch T d_model", "mask": "batch T"},
    "kinds": {"mask": "keep"},
    "returns": [{"name": "context", "axes": "batch T d_model"}],
}
"""What is declared of self-attention under a mask of padding."""


@dataclass(frozen=True)
class Asked:
    """A class that a kind is asked about, and the configurations that may be meant."""

    said: Said
    configs: Sequence[tuple[str, str]]

    @property
    def name(self) -> str:
        """Name of the class."""
        return str(self.said.kind.__name__)

    @property
    def takes(self) -> tuple[str, ...]:
        """Names of the parameters of its call."""
        return tuple(inspect.signature(self.said.kind.forward).parameters)[1:]

    @property
    def built_with(self) -> tuple[str, ...]:
        """Names of the parameters of its constructor."""
        return self.said.built_with[1:]

    def config(self, pattern: str = "") -> tuple[str, str]:
        """Module and name of the first configuration whose name holds a pattern.

        Raises
        ------
        LookupError
            If there is none.
        """
        for module, name in self.configs:
            if re.search(pattern, name):
                return module, name
        raise LookupError("its configuration class is not found")

    def beside(self, attribute: str) -> str:
        """Name of the first class of its module with an attribute of its own, or ''."""
        module = vars(self.said.loaded)
        kinds = {n: c for n, c in module.items() if isinstance(c, type)}
        return next((n for n, c in kinds.items() if attribute in vars(c)), "")


@dataclass(frozen=True)
class Way:
    """A wrapper and a contract; ``form`` stands in brackets behind the name.

    ``certain`` says that its manual describes this very call, so that an error is a finding.
    """

    form: str
    contract: Mapping[str, Any]
    source: str
    certain: bool = False

    @classmethod
    def of(
        cls,
        asked: Asked,
        form: str,
        build: str,
        call: str,
        contract: Mapping[str, Any],
        *,
        config: tuple[str, str] | None = None,
        beside: Sequence[str] = (),
    ) -> "Way":
        """Fill in the wrapper's text.

        ``build`` and ``call`` are the bodies of its constructor and of its call, in which
        NAME is the class and CONFIG its configuration made small; ``beside`` names what else
        of the class's module they use.
        """
        module = asked.said.loaded.__name__
        imports = [f"from {module} import {', '.join((asked.name, *beside))}"]
        small = ""
        if config is not None:
            imports.append(f"from {config[0]} import {config[1]}")
            small = f"shrink({config[1]}(), d_model, heads, heads, d_head)"
        lines = {
            key: _indented(text.replace("CONFIG", small).replace("NAME", asked.name))
            for key, text in (("build", build), ("call", call))
        }
        source = _TEXT.format(
            name=asked.name,
            module=module,
            imports="\n".join(imports),
            init=", ".join(contract["init"]),
            arguments=", ".join(contract["inputs"]),
            **lines,
        )
        return cls(form, {"target": "wrapped.py:Wrapped", **contract}, source)


def own(**more: Any) -> dict[str, Any]:
    """What is declared of self-attention, and more."""
    return {**OWN, **more}


def cross(**more: Any) -> dict[str, Any]:
    """What is declared of attention from one sequence to another, and more."""
    stated: dict[str, Any] = {
        "init": OWN["init"],
        "inputs": {
            "hidden_states": "batch T_dec d_model",
            "memory": "batch T_enc d_model",
            "mask": "batch T_enc",
        },
        "kinds": {"mask": "keep"},
        "returns": [{"name": "context", "axes": "batch T_dec d_model"}],
    }
    return {**stated, **more}


def _indented(text: str) -> str:
    lines = [line for line in text.strip("\n").splitlines() if line.strip()]
    first = min(len(line) - len(line.lstrip()) for line in lines)
    return "\n".join(" " * 8 + line[first:] for line in lines)
