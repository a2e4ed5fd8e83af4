"""One run of the target with proposed axes, and how far it got."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from regard.check.contract import Contract
from regard.check.probe import Probe
from regard.check.roles.layouts import Choice
from regard.check.roles.sizing import Start
from regard.check.sizes import Sizes
from regard.check.subject import Crash, Instance, Loaded, Outcome

__all__ = ["Trial", "coinciding", "counted"]


@dataclass(frozen=True)
class Trial:
    """One run: the contract it was made with, what came out, and how far it got."""

    choice: Choice
    start: Start
    names: Mapping[str, str]
    forms: Mapping[str, str]
    contract: Contract
    result: Outcome | Crash
    progress: int
    cost: float = 0.0
    joined: bool = False  # queries and keys were put on one axis to make it run
    sizes: Mapping[str, str] = field(default_factory=dict)  # coincidences, name -> name
    which: int = 0

    @property
    def message(self) -> str:
        """The crash's own words, or an empty text."""
        return self.result.message if isinstance(self.result, Crash) else ""

    @property
    def state(self) -> tuple[object, ...]:
        """What was tried: names and forms."""
        return (*sorted(self.names.items()), *sorted(self.forms.items()))

    @property
    def runs(self) -> bool:
        """Whether the target returned."""
        return isinstance(self.result, Outcome)


def coinciding(which: int, contract: Contract, same: Mapping[str, str]) -> Sizes:
    """Sizes of a set in which some names have the size of another name."""
    plain = Sizes(which, contract.sizes)
    return Sizes(which, {**contract.sizes, **{n: int(plain.value(e)) for n, e in same.items()}})


def counted(loaded: Loaded, contract: Contract, sizes: Sizes) -> tuple[Outcome | Crash, int]:
    """Build and call the target, counting the operations of the user's file that ran."""
    count = 0

    def local(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if event == "opcode":
            count += 1
        return local

    def enter(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != loaded.path:
            return None
        frame.f_trace_opcodes = True
        return local

    probe = Probe(contract, sizes)
    before = sys.gettrace()
    sys.settrace(enter)
    try:
        instance = Instance(loaded, contract, sizes)
        result = instance.call(probe.args)
    finally:
        sys.settrace(before)
    return result, count
