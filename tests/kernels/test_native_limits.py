"""The native library where a machine is unusual: huge arrays, no memory, nowhere to write."""

import subprocess
import sys

import numpy as np
import pytest
import torch

from regard.kernels import native, native_step
from regard.kernels.additive import additive_scores

pytestmark = pytest.mark.skipif(not native.available(), reason=str(native.reason()))

HUGE = 2**31


def _zeros(*shape):
    """Zeros that take memory only where they are written to."""
    try:
        return np.zeros(shape, np.float32)
    except MemoryError:
        pytest.skip("this machine promises no such array")


def test_keys_beyond_two_to_the_31_numbers_are_read_at_their_own_place(rng):
    # Only two keys are permitted, and no other is ever touched.
    d_attn = 2**12
    T_enc = HUGE // d_attn + 3
    key, mask = _zeros(1, T_enc, d_attn), np.zeros((1, T_enc), bool)
    chosen = [5, T_enc - 1]
    mask[0, chosen] = True
    key[0, chosen] = rng.standard_normal((2, d_attn))
    query = rng.standard_normal((1, 3, d_attn)).astype("f")
    v = rng.standard_normal(d_attn).astype("f")
    expected = native.additive_scores(query, key[:, chosen], v)
    scores = native.additive_scores(query, key, v, key_mask=mask)
    assert np.array_equal(scores[..., chosen], expected)
    assert np.count_nonzero(scores) == expected.size


def test_examples_beyond_two_to_the_31_numbers_step_at_their_own_place(rng):
    d_attn, T_enc, d_v = 2**12, 2**10, 3
    batch = HUGE // (d_attn * T_enc) + 2
    key, mask = _zeros(batch, T_enc, d_attn), np.zeros((batch, T_enc), bool)
    mask[-1, -2:] = True
    key[-1, -2:] = rng.standard_normal((2, d_attn))
    query = rng.standard_normal((batch, 1, d_attn)).astype("f")
    v, value = rng.standard_normal(d_attn).astype("f"), np.ones((batch, T_enc, d_v), "f")
    try:
        keys = native_step.prepare(key, key_mask=mask)
    except MemoryError:
        pytest.skip("this machine promises no such array")
    got = native_step.step(query, keys, v, value)
    near = native_step.prepare(key[-1:, -2:])
    expected = native_step.step(query[-1:], near, v, value[-1:, -2:])
    assert np.array_equal(got.scores[-1, :, -2:], expected.scores[0])
    assert np.count_nonzero(got.weights) == 2


@pytest.mark.slow
def test_work_beyond_two_to_the_31_pairs_and_features_is_right(rng):
    T, d_attn = 2048, 521
    query, key = (rng.standard_normal((1, T, d_attn)).astype("f") for _ in range(2))
    v = rng.standard_normal(d_attn).astype("f")
    scores = native.additive_scores(query, key, v)
    rows = [0, 1023, T - 1]
    expected = np.tanh(query[0, rows, None].astype(np.float64) + key[0]) @ v.astype(np.float64)
    np.testing.assert_allclose(scores[0, rows], expected, rtol=0, atol=1e-7 * np.abs(v).sum())


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_other_number_types_are_as_exact_as_their_own_formula(monkeypatch, dtype):
    monkeypatch.setenv("REGARD_KERNELS", "native")
    torch.manual_seed(3)
    given = [torch.randn(shape).to(dtype) for shape in ((2, 5, 53), (2, 11, 53), (53,))]
    query, key, v = (each.double() for each in given)
    exact = torch.tanh(query.unsqueeze(-2) + key.unsqueeze(-3)) @ v
    bound = float(v.abs().sum()) * torch.finfo(dtype).eps
    scores = additive_scores(*given)
    assert scores.dtype == dtype
    torch.testing.assert_close(scores.double(), exact, rtol=0, atol=2 * bound)


NO_MEMORY = """
import resource
import numpy as np
from regard.kernels import native

native.available()  # loads it
given = np.ones((1, 3, 2**20), "f"), np.ones((1, 5, 2**20), "f"), np.ones(2**20, "f")
resource.setrlimit(resource.RLIMIT_AS, (2**20, 2**20))
try:
    native.forward([each.ctypes.data for each in given[:2]] + [given[2].ctypes.data, None, 0],
                   native.Sizes(1, 3, 5, 2**20))
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are Linux's")
def test_without_memory_for_the_workspace_there_is_one_clear_error():
    assert _output(NO_MEMORY) == "no memory for the native kernel's workspace\n"


WRITES_NOTHING = """
import os, sys
written = []

def watch(event, arguments):
    if event == "open" and arguments[1] and any(c in str(arguments[1]) for c in "wax+"):
        written.append(arguments[0])
    if event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        written.append(arguments[0])
    if event.startswith(("os.mkdir", "os.rename", "os.remove", "subprocess", "os.exec")):
        written.append(event)

import numpy as np
sys.addaudithook(watch)
from regard.kernels import native, native_step

query, key, v = np.ones((1, 1, 3), "f"), np.ones((1, 5, 3), "f"), np.ones(3, "f")
native.additive_gradients(query, key, v, native.additive_scores(query, key, v))
native_step.step(query, native_step.prepare(key), v, key)
print(written)
"""


def test_nothing_is_written_anywhere():
    assert _output(WRITES_NOTHING) == "[]\n"


def _output(script):
    ran = subprocess.run(
        [sys.executable, "-B", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return ran.stdout
