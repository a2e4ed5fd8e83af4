"""A refusal under ``torchrun``: said once a machine, and put where its report shows it.

``torchrun`` ends with a traceback of its own and a report of the process that failed first; the
report shows what that process wrote into the file named by ``TORCHELASTIC_ERROR_FILE``.
"""

import json
import os
import time
from contextlib import suppress

__all__ = ["is_to_be_said", "report"]


def is_to_be_said() -> bool:
    """Return whether this process speaks: the first one of its machine, or the only one."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def report(text: str) -> None:
    """Leave an error for ``torchrun``, if it is there."""
    path = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if path:
        # An error text is not worth another error.
        with suppress(OSError), open(path, "w", encoding="utf-8") as stream:
            json.dump({"message": text, "timestamp": str(int(time.time()))}, stream)
