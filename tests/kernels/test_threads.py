"""Threads of the native library: how many, and that they change nothing but the time."""

import multiprocessing
import subprocess
import sys

import numpy as np
import pytest
import torch
from kernel_regimes import BATCH, T_ENC, arrays_of, normal

from regard.kernels import native, native_step
from regard.kernels.threads import threads_for

MUCH = 10**9

needs_library = pytest.mark.skipif(not native.available(), reason=str(native.reason()))


def test_little_work_is_one_threads(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    assert [threads_for(work) for work in (0, 10**6, 7 * 10**6, 8 * 10**6, MUCH)] == [
        *(1, 1, 1, 2),
        7,
    ]


@pytest.mark.parametrize("allowed", [1, 3])
def test_pytorchs_number_is_read_at_every_call(allowed):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(allowed)
        assert threads_for(MUCH) == allowed
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("wish", "expected"), [("3", 3), ("5,2", 5), ("0", 11), ("many", 11), (None, 11)]
)
def test_without_pytorch_the_environment_says_and_then_the_processors(
    monkeypatch, wish, expected
):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: range(11), raising=False)
    if wish is None:
        monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    else:
        monkeypatch.setenv("OMP_NUM_THREADS", wish)
    assert threads_for(MUCH) == expected


def _everything(rng):
    """Scores, gradients and a step, where examples differ in kind of arithmetic and in mask."""
    query, key, v, grad = arrays_of("normal 1", rng)
    key[1] *= 30  # too far apart to be factored
    mask = np.ones((BATCH, T_ENC), bool)
    mask[0, ::3] = False
    value = normal(rng, BATCH, T_ENC, 11)
    keys = native_step.prepare(key, key_mask=mask)
    return (
        native.additive_scores(query, key, v, key_mask=mask),
        *native.additive_gradients(query, key, v, grad, key_mask=mask),
        *native_step.step(query[:, :1], keys, v, value),
    )


@needs_library
@pytest.mark.parametrize("threads", [2, 3, 5, 64, 1000])
def test_any_number_of_threads_gives_the_same_bits(monkeypatch, threads):
    alone = _everything(np.random.default_rng(13))
    for module in (native, native_step):
        monkeypatch.setattr(module, "threads_for", lambda work: threads)
    together = _everything(np.random.default_rng(13))
    for mine, theirs in zip(together, alone, strict=True):
        assert np.array_equal(mine, theirs)


CHILD = """
import multiprocessing, sys
import numpy as np
from regard.kernels import native

native.threads_for = lambda work: 3

def scores():
    rng = np.random.default_rng(7)
    shapes = (2, 7, 53), (2, 19, 53), (53,)
    return native.additive_scores(*(rng.standard_normal(s).astype("f") for s in shapes))

if __name__ == "__main__":
    mine = scores()  # threads have run before the fork
    context = multiprocessing.get_context(sys.argv[1])
    with context.Pool(2) as pool:
        found = [pool.apply(scores) for _ in range(3)]
    print(all(np.array_equal(each, mine) for each in found), np.abs(mine).max() > 1)
"""


@needs_library
@pytest.mark.parametrize("way", ["fork", "spawn"])
def test_a_child_process_has_threads_of_its_own(way, tmp_path):
    if way not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {way} on this system")
    script = tmp_path / "child.py"
    script.write_text(CHILD, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, script, way], capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.split() == ["True", "True"]


NO_THREADS = """
import resource, threading
import numpy as np
from regard.kernels import native

rng = np.random.default_rng(7)
given = [rng.standard_normal(s).astype("f") for s in ((2, 7, 53), (2, 19, 53), (53,))]
native.threads_for = lambda work: 1
alone = native.additive_scores(*given)
native.threads_for = lambda work: 8
resource.setrlimit(resource.RLIMIT_AS, (2**20, 2**20))
try:
    threading.Thread(target=print).start()
except RuntimeError:
    print("refused", np.array_equal(native.additive_scores(*given), alone))
"""


@needs_library
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are Linux's")
def test_where_no_thread_can_be_had_the_caller_does_the_work():
    # A thread's stack does not fit into what is left of the address space.
    ran = subprocess.run(
        [sys.executable, "-c", NO_THREADS],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert ran.stdout.split() == ["refused", "True"]
