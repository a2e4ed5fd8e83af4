"""The shape walk against NumPy: what fails there fails here, and the shapes are its shapes."""

import itertools

import numpy as np
import pytest

from node import NODE, WHY, Modules
from regard.learn.figures.figure import SCRIPTS

pytestmark = pytest.mark.skipif(NODE is None, reason=WHY)


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    return Modules(SCRIPTS, tmp_path_factory.mktemp("modules"))


def shape_of(operation, a, b):
    try:
        return list(operation(np.zeros(a), np.zeros(b)).shape)
    except ValueError:
        return None


def test_broadcasting_and_products_are_numpys(modules):
    shapes = [
        [],
        [1],
        [3],
        [2, 3],
        [3, 2],
        [1, 3],
        [2, 1, 3],
        [5, 3, 2],
        [2, 3, 3],
        [1, 2, 5, 3],
    ]
    pairs = list(itertools.product(shapes, repeat=2))
    (found,) = modules.run(
        "say(pairs.map(([a, b]) => [shapes.together(a, b), shapes.product(a, b)]));",
        "shapes",
        pairs=pairs,
    )
    for (a, b), (together, product) in zip(pairs, found, strict=True):
        assert together == shape_of(np.add, a, b), (a, b)
        assert product == shape_of(np.matmul, a, b), (a, b)


def softmax(scores, axis):
    raised = np.exp(scores)
    return raised / raised.sum(axis=axis, keepdims=True)


def run_in_numpy(steps, tensors):
    """Run the lines that the walk shows; they are Python but for `softmax` and `mT`."""
    seen = []
    for step in steps:
        code = step["code"].replace(".mT", ".swapaxes(-1, -2)")
        try:
            tensors[step["name"]] = eval(code, {"tanh": np.tanh, "softmax": softmax, **tensors})
        except ValueError:
            seen.append((step["name"], None))
            break
        seen.append((step["name"], list(tensors[step["name"]].shape)))
    return seen


@pytest.mark.parametrize("sizes", [
    {"batch": 2, "T_dec": 5, "T_enc": 7, "d_s": 11, "d_h": 13, "d_attn": 3},
    {"batch": 5, "T_dec": 5, "T_enc": 5, "d_s": 5, "d_h": 5, "d_attn": 5},
    {"batch": 2, "T_dec": 1, "T_enc": 7, "d_s": 3, "d_h": 3, "d_attn": 11},
    {"batch": 1, "T_dec": 7, "T_enc": 7, "d_s": 13, "d_h": 13, "d_attn": 13},
])  # fmt: skip
@pytest.mark.parametrize("score", ["additive", "dot", "general"])
def test_every_walk_stops_where_numpy_stops_and_has_its_shapes(modules, score, sizes):
    (walks,) = modules.run(
        "const count = shapes.mistakes(score).length;"
        "say(Array.from({length: count + 1}, (_, at) => shapes.walk(score, sizes, at - 1)));",
        "shapes",
        score=score,
        sizes=sizes,
    )
    assert len(walks) >= 4
    for walk in walks:
        tensors = {name: np.zeros(shape) for name, shape in walk["inputs"]}
        found = [(step["name"], step["shape"]) for step in walk["steps"]]
        assert found == run_in_numpy(walk["steps"], tensors)
        for step in walk["steps"]:
            wanted = [sizes[axis] for axis in step["axes"].split()]
            verdict = "right" if step["shape"] == wanted else "wrong"
            assert step["verdict"] == ("fails" if step["shape"] is None else verdict)


def test_with_sizes_that_differ_every_mistake_but_the_hidden_one_shows(modules):
    sizes = {"batch": 2, "T_dec": 5, "T_enc": 7, "d_s": 11, "d_h": 13, "d_attn": 3}
    (shown,) = modules.run(
        """
        say(["additive", "dot", "general"].flatMap((score) => shapes.mistakes(score).map(
          (name, at) => [name, shapes.walk(score, sizes, at).steps.map((s) => s.verdict)])));
        """,
        "shapes",
        sizes=sizes,
    )
    for name, verdicts in shown:
        if name == "softmax over the queries":
            continue
        assert set(verdicts) != {"right"}, name
