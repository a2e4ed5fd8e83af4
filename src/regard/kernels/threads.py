"""How many threads one call of the native library may use."""

import os
import sys

__all__ = ["threads_for"]

# Pairs times features that a thread must have to do: some 0.3 ms of work. A thread is started
# for the call and ends with it, which costs some 0.03 ms.
_WORTH_A_THREAD = 4_000_000


def threads_for(work: int) -> int:
    """Return a number of threads from 1.

    Parameters
    ----------
    work : int
        Pairs times d_attn. Little work is one thread's.

    Returns
    -------
    threads : int
        At most what PyTorch allows itself (``torch.set_num_threads``) where it is loaded, else
        OMP_NUM_THREADS, else the processors this process may use; read at every call.
    """
    worth = work // _WORTH_A_THREAD
    return 1 if worth < 2 else max(1, min(worth, _allowed()))


def _allowed() -> int:
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_num_threads"):
        return int(torch.get_num_threads())
    # The first of "4,2" is the outermost level's.
    wish = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    if wish.isdecimal() and int(wish) > 0:
        return int(wish)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
