"""What attend refuses of its options, and where it can be traced."""

import subprocess
import sys

import numpy as np
import pytest

import regard as rg

QUERY, KEY = np.ones((2, 3, 5)), np.ones((2, 13, 5))


@pytest.mark.parametrize("scale", ["x", float("nan"), float("inf"), True, [2.0]])
def test_a_scale_that_is_no_finite_number_is_refused(scale):
    with pytest.raises(rg.ConventionError) as caught:
        rg.attend(QUERY, KEY, scale=scale)
    assert str(caught.value) == (
        "attend(): `scale` is no finite number\n"
        "  expected  scale=a finite number, or an array without axes\n"
        f"  got       scale={scale!r}"
    )


def test_a_scale_may_be_an_array_without_axes_and_is_never_broadcast(rng):
    query, key = rng.normal(size=(3, 5)), rng.normal(size=(13, 5))
    number, array = (rg.attend(query, key, scale=scale) for scale in (0.5, np.asarray(0.5)))
    np.testing.assert_array_equal(array.weights, number.weights)
    with pytest.raises(rg.ConventionError, match="shape \\(3, 1\\)"):
        rg.attend(query, key, scale=np.ones((3, 1)))


def test_a_score_of_the_callers_is_held_to_its_shape():
    with pytest.raises(rg.ShapeError) as caught:
        rg.attend(QUERY, KEY, score=lambda query, key: np.ones((2, 1, 13)))
    assert str(caught.value) == (
        "the function given as `score` returns no score for each query and key\n"
        "  expected  scores (2, 3, 13), which is (*batch, T_dec, T_enc)\n"
        "  got       scores (2, 1, 13)"
    )
    with pytest.raises(rg.ShapeError, match="NoneType"):
        rg.attend(QUERY, KEY, score=lambda query, key: None)


@pytest.mark.parametrize("heads", [0, -1, 2.0, True, "2"])
def test_a_number_of_heads_is_an_integer_of_at_least_one(heads):
    with pytest.raises(rg.ShapeError) as caught:
        rg.split_heads(QUERY, heads)
    assert str(caught.value) == (
        "`heads` is no number of heads\n"
        "  expected  an integer, at least 1 head\n"
        f"  got       heads={heads!r}"
    )


def test_vmap_maps_attend_with_lengths():
    torch = pytest.importorskip("torch")
    query, key = torch.randn(2, 3, 5), torch.randn(2, 13, 5)
    lengths = torch.tensor([13, 4])
    mapped = torch.func.vmap(lambda q, k, n: rg.attend(q, k, key_lengths=n).context)
    expected = rg.attend(query, key, key_lengths=lengths).context
    torch.testing.assert_close(mapped(query, key, lengths), expected)


COMPILED = """
import torch, regard as rg
torch.set_num_threads(1)
attend = rg.attend
def f(query, key, lengths):
    return attend(query, key, score="dot", key_lengths=lengths, causal="top_left")
given = torch.randn(2, 3, 5), torch.randn(2, 13, 5), torch.tensor([13, 4])
found = torch.compile(f, fullgraph=True, backend="eager")(*given)
torch.testing.assert_close(found.weights, f(*given).weights)
"""


def test_torch_compile_takes_attend_whole_at_the_first_trace_and_without_a_warning():
    pytest.importorskip("torch")
    # A fresh process: nothing may rely on an eager call before.
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", COMPILED],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "graph break" not in ran.stderr.lower()
