"""The most memory that additive attention takes beyond its inputs, each in a fresh process.

    python benchmarks/additive_memory.py "regard native, torch" S2 train

prints mebibytes for one of the variants of benchmarks/additive.py. Linux tells a process its
peak and lets it start again from now; other systems have no such figure.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from additive_sizes import SIZES

__all__ = ["SHOWN", "peak"]

SHOWN = ("eager torch", "Keras (torch)", "regard blocks, torch", "regard native, torch")
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak(variant: str, size: str, *, train: bool) -> float | None:
    """Return mebibytes above what the inputs take, or None where they cannot be told.

    Parameters
    ----------
    variant, size : str
        Of benchmarks/additive.py.
    train : bool
        With the backward pass.
    """
    if not (_STATUS.exists() and os.access(_RESET, os.W_OK)):
        return None
    command = [sys.executable, __file__, variant, size, "train" if train else "forward"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(ran.stdout.splitlines()[-1])


def _measured(variant: str, size: str, *, train: bool) -> float:
    import torch  # noqa: PLC0415 - only in the fresh process

    from additive import given, seconds  # noqa: PLC0415
    from additive_variants import variants  # noqa: PLC0415

    torch.set_num_threads(1)
    attend = next(x.attend for x in variants(compiled=False) if x.name == variant)
    assert attend is not None, f"{variant} does not take part here"
    seconds(attend, given((1, 2, 3, 32)), train=train)  # loads what is loaded once
    inputs = given(SIZES[size])
    _RESET.write_text("5", encoding="utf-8")
    before = _status("VmRSS")
    seconds(attend, inputs, train=train)
    return (_status("VmHWM") - before) / 1024


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", _STATUS.read_text(encoding="utf-8"))
    assert found, f"{_STATUS} has no {name}"
    return int(found[1])


if __name__ == "__main__":
    print(_measured(sys.argv[1], sys.argv[2], train=sys.argv[3] == "train"))
