"""Questions about shapes, made anew each time: regard is run, and its shape is the answer."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np

import regard as rg
from regard.learn.quiz.question import Made

__all__ = ["MAKERS"]

_PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23)


def _sizes(draw: random.Random, *axes: str) -> dict[str, int]:
    """Draw a size for each axis, no two alike."""
    return dict(zip(axes, draw.sample(_PRIMES, len(axes)), strict=True))


def _said(sizes: dict[str, int]) -> str:
    return ", ".join(f"{axis} = {size}" for axis, size in sizes.items())


def _shape(array: Any) -> str:
    return _tuple(np.shape(array))


def _tuple(sizes: Any) -> str:
    sizes = tuple(int(size) for size in sizes)
    return str(sizes)


def _additive(sizes: dict[str, int]) -> dict[str, Any]:
    return {
        "query": np.ones((sizes["batch"], sizes["T_dec"], sizes["d_s"])),
        "key": np.ones((sizes["batch"], sizes["T_enc"], sizes["d_h"])),
        "W_a": np.ones((sizes["d_attn"], sizes["d_s"])),
        "U_a": np.ones((sizes["d_attn"], sizes["d_h"])),
        "v_a": np.ones(sizes["d_attn"]),
    }


_AXES = ("batch", "T_dec", "T_enc", "d_s", "d_h", "d_attn")


def weights_shape(draw: random.Random) -> Made:
    """Ask for the shape of additive weights."""
    n = _sizes(draw, *_AXES)
    given = _additive(n)
    params = {name: given[name] for name in ("W_a", "U_a", "v_a")}
    context, weights = rg.attend(given["query"], given["key"], score="additive", **params)
    return Made(
        f"Additive attention with {_said(n)}. What is the shape of the weights?",
        _shape(weights),
        [
            _tuple((n["batch"], n["T_enc"], n["T_dec"])),
            _tuple((n["batch"], n["T_dec"], n["d_attn"])),
            _shape(context),
        ],
        "Each of the T_dec queries has one weight for each of the T_enc keys: "
        "(batch, T_dec, T_enc). The size of the features is summed away by v_a.",
    )


def context_shape(draw: random.Random) -> Made:
    """Ask for the shape of an additive context."""
    n = _sizes(draw, *_AXES)
    given = _additive(n)
    params = {name: given[name] for name in ("W_a", "U_a", "v_a")}
    context, weights = rg.attend(given["query"], given["key"], score="additive", **params)
    return Made(
        f"Additive attention over the encoder states, with {_said(n)}. What is the shape of "
        "the "
        "context?",
        _shape(context),
        [
            _tuple((n["batch"], n["T_dec"], n["d_attn"])),
            _tuple((n["batch"], n["T_enc"], n["d_h"])),
            _shape(weights),
        ],
        "A context is a mean of encoder states, so it has their size d_h, once for each query: "
        "(batch, T_dec, d_h).",
    )


def pairs_shape(draw: random.Random) -> Made:
    """Ask for the array that additive attention makes, if it makes it."""
    n = _sizes(draw, *_AXES)
    given = _additive(n)
    asked, offered = given["query"] @ given["W_a"].T, given["key"] @ given["U_a"].T
    pairs = np.tanh(asked[:, :, None] + offered[:, None])
    return Made(
        f"With {_said(n)}: what is the shape of `tanh(asked[:, :, None] + offered[:, None])`, "
        "where `asked = query @ W_a.T` and `offered = key @ U_a.T`?",
        _shape(pairs),
        [
            _tuple((n["batch"], n["T_dec"], n["T_enc"])),
            _tuple((n["batch"], n["T_enc"], n["T_dec"], n["d_attn"])),
            _tuple((n["batch"], n["T_dec"], n["T_enc"], n["d_h"])),
        ],
        "Every query meets every key in d_attn features. This array is what makes the plain "
        "formula expensive.",
    )


def parameter_shape(draw: random.Random) -> Made:
    """Ask for the shape of one parameter of the additive score."""
    n = _sizes(draw, "d_s", "d_h", "d_attn")
    name = draw.choice(["W_a", "U_a"])
    given = _additive({**n, "batch": 2, "T_dec": 3, "T_enc": 5})
    rg.scores.additive(**given)  # would refuse another shape
    other = {"W_a": "U_a", "U_a": "W_a"}[name]
    whose = {"W_a": "the decoder's state, of size d_s", "U_a": "the encoder's, of size d_h"}
    return Made(
        f"In `v_a . tanh(W_a s + U_a h)` with {_said(n)}: what is the shape of `{name}`?",
        _shape(given[name]),
        [
            _shape(given[other]),
            _tuple(reversed(given[name].shape)),
            _tuple((n["d_s"], n["d_h"])),
        ],
        f"`{name}` takes {whose[name]}, to d_attn features: a matrix that is applied to a "
        "column "
        "has the size of its result first.",
    )


def general_shape(draw: random.Random) -> Made:
    """Ask for the shape of W in Luong's general score."""
    n = _sizes(draw, "d_s", "d_h")
    W = np.ones((n["d_s"], n["d_h"]))
    rg.scores.general(np.ones((2, 3, n["d_s"])), np.ones((2, 5, n["d_h"])), W=W)
    return Made(
        f"Luong's general score is `s . W h`. With {_said(n)}, what is the shape of `W`?",
        _shape(W),
        [
            _tuple((n["d_h"], n["d_s"])),
            _tuple((n["d_s"], n["d_s"])),
            _tuple((n["d_h"], n["d_h"])),
        ],
        "`W h` must have the size of s for the inner product, and W takes h: (d_s, d_h).",
    )


def dot_refuses(draw: random.Random) -> Made:
    """Ask what a dot product of unlike sizes does."""
    n = _sizes(draw, "batch", "T_dec", "T_enc", "d_s", "d_h")
    query = np.ones((n["batch"], n["T_dec"], n["d_s"]))
    key = np.ones((n["batch"], n["T_enc"], n["d_h"]))
    try:
        rg.scores.dot(query, key)
    except rg.ShapeError:
        right = "it cannot be computed: d_s and d_h differ"
    else:
        right = _tuple((n["batch"], n["T_dec"], n["T_enc"]))
    return Made(
        f"The dot score of a query {_shape(query)} and a key {_shape(key)}: what is its shape?",
        right,
        [
            _tuple((n["batch"], n["T_dec"], n["T_enc"])),
            _tuple((n["batch"], n["d_s"], n["d_h"])),
            _tuple((n["batch"], n["T_enc"], n["T_dec"])),
        ],
        "An inner product needs two vectors of one size. The general score puts a matrix W of "
        "shape (d_s, d_h) between them.",
    )


def head_shape(draw: random.Random) -> Made:
    """Ask for the shape of the weights of several heads."""
    n = _sizes(draw, "batch", "T_dec", "T_enc")
    heads, d_head = draw.choice([2, 4, 8]), draw.choice([3, 5, 7])
    d = heads * d_head
    query = np.ones((n["batch"], n["T_dec"], d))
    key = np.ones((n["batch"], n["T_enc"], d))
    _, weights = rg.multi_head(query, key, heads=heads)
    return Made(
        f"Multi-head attention with {_said(n)}, d_model = {d} and {heads} heads. What is the "
        "shape of the weights?",
        _shape(weights),
        [
            _tuple((n["batch"], n["T_dec"], n["T_enc"], heads)),
            _tuple((n["batch"], n["T_dec"], n["T_enc"])),
            _tuple((n["batch"], heads, n["T_dec"], d_head)),
        ],
        "Every head has weights of its own, and heads stand beside the batch: (batch, heads, "
        "T_dec, T_enc).",
    )


def split_shape(draw: random.Random) -> Made:
    """Ask for the shape after the split into heads."""
    n = _sizes(draw, "batch", "T_enc")
    heads, d_head = draw.choice([2, 4, 8]), draw.choice([3, 5, 7])
    states = np.ones((n["batch"], n["T_enc"], heads * d_head))
    return Made(
        f"Keys of shape {_shape(states)} are split into {heads} heads. What is the shape then?",
        _shape(rg.split_heads(states, heads)),
        [
            _tuple((n["batch"], n["T_enc"], heads, d_head)),
            _tuple((n["batch"], d_head, n["T_enc"], heads)),
            _tuple((n["batch"] * heads, d_head, n["T_enc"])),
        ],
        "First (batch, T, heads, d_head) by a reshape, then a transposition that brings heads "
        "before T. A reshape straight to (batch, heads, T, d_head) would mix positions and "
        "heads.",
    )


def broadcast_shape(draw: random.Random) -> Made:
    """Ask what a sum without new axes does."""
    n = _sizes(draw, "batch", "T_enc", "d_attn")
    state, offers = np.ones((n["batch"], n["d_attn"])), np.ones(tuple(n.values()))
    try:
        right = _shape(state + offers)
    except ValueError:
        right = "an error: the shapes do not fit"
    return Made(
        f"A projected state {_shape(state)} is added to projected keys {_shape(offers)} "
        "without a "
        "new axis. What comes of `state + keys`?",
        right,
        [
            _shape(offers),
            _tuple((n["batch"], n["batch"], n["d_attn"])),
            _tuple((n["batch"], n["d_attn"])),
        ],
        "Shapes are compared from the right: d_attn fits, then batch meets T_enc, which "
        "differ. If "
        "batch were equal to T_enc it would run, and be wrong: `state[:, None]` is meant.",
    )


def silent_broadcast(draw: random.Random) -> Made:
    """Ask for the shape of a sum that should have failed."""
    n = _sizes(draw, "T_dec", "d_attn")
    batch = n["T_dec"]
    asked = np.ones((batch, n["T_dec"], n["d_attn"]))
    bias = np.ones((batch, n["d_attn"]))
    return Made(
        f"A vector for each example, {_shape(bias)}, is added to features {_shape(asked)} of "
        "shape "
        "(batch, T_dec, d_attn). What happens?",
        f"it runs, {_shape(asked + bias)}, and gives example i's vector to position i",
        [
            "an error: the shapes do not fit",
            f"it runs, {_shape(asked + bias)}, and gives each example its vector",
            f"it runs, {_tuple((batch, batch, n['T_dec'], n['d_attn']))}",
        ],
        "From the right, batch lands on T_dec. They are equal here, so nothing stops: the "
        "worst "
        "kind of bug. Distinct sizes in tests bring it to light.",
    )


def permitted_keys(draw: random.Random) -> Made:
    """Ask how many keys a query may see under a causal mask."""
    T = draw.randint(5, 12)
    t = draw.randrange(T)
    permitted = rg.masks.causal(T, T)
    count = int(np.sum(np.asarray(permitted)[t]))
    return Made(
        f"Self-attention over {T} positions with a causal mask. How many keys may position "
        f"{t}, "
        "counted from 0, attend?",
        str(count),
        [str(each) for each in (count - 1, T - count, T - t, count + 1, T) if each >= 0],
        "A position may attend itself and all before it: t + 1 of them.",
    )


def window_keys(draw: random.Random) -> Made:
    """Ask how many keys a window leaves."""
    left, right = draw.randint(1, 3), draw.randint(0, 2)
    T = draw.randint(10, 14)
    t = draw.randint(left, T - right - 1)
    permitted = np.asarray(rg.masks.window(T, T, left=left, right=right))
    count = int(permitted[t].sum())
    return Made(
        f"A window of {left} to the left and {right} to the right over {T} positions. How many "
        f"keys may position {t} attend?",
        str(count),
        [str(each) for each in (left + right, left, count + 1, T)],
        "Those on both sides and itself: left + right + 1, except near the ends.",
    )


MAKERS: dict[str, tuple[str, str, Callable[[random.Random], Made]]] = {
    "shape-weights": ("additive", "check", weights_shape),
    "shape-context": ("additive", "after", context_shape),
    "shape-parameter": ("additive", "check", parameter_shape),
    "shape-pairs": ("factored-kernel", "before", pairs_shape),
    "shape-general": ("luong", "check", general_shape),
    "shape-dot-refuses": ("luong", "before", dot_refuses),
    "shape-heads": ("multi-head", "check", head_shape),
    "shape-split": ("multi-head", "after", split_shape),
    "shape-broadcast": ("debugging-shapes", "before", broadcast_shape),
    "shape-silent": ("debugging-shapes", "after", silent_broadcast),
    "mask-causal": ("masks", "check", permitted_keys),
    "mask-window": ("masks", "after", window_keys),
}
"""Name of a question: its lesson, when it is asked, what makes it."""
