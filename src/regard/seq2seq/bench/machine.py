"""What a result was measured on."""

import os
import platform
from importlib import metadata
from typing import Any

from regard.version import __version__

__all__ = ["machine"]


def machine() -> dict[str, Any]:
    """Return processor, cores, and versions; nothing that names the machine or its user."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1,
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": metadata.version("torch"),
        "regard": __version__,
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            for line in stream:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
