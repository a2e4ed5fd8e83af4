"""The zoo: code that must be found, and code that must be left alone.

`bad/` holds one bug a file; the comment `# expect: RG301` stands on its line. `good/` holds
correct code that looks wrong to a naive rule: it is the budget of false alarms, which is 0.
Beside each file stands its contract.
"""

from pathlib import Path
from typing import Any

import pytest

from regard.check.rules import every
from zoo_cases import BAD, EXPECT, GOOD, contract_of, entry_of

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")

SIZES = {
    "batch": 2,
    "T_dec": 5,
    "T_enc": 13,
    "T": 7,
    "T_mem": 11,
    "d_h": 17,
    "d_s": 19,
    "d_v": 23,
    "d_attn": 29,
    "heads": 3,
    "kv_heads": 3,
    "d_head": 31,
    "d_model": 3 * 31,
}


def by_name(paths: list[Path]) -> Any:
    return pytest.mark.parametrize("path", paths, ids=[path.stem for path in paths])


def size(expression: str) -> int:
    return int(eval(expression, {"__builtins__": {}}, SIZES))


def shape(axes: str) -> tuple[int, ...]:
    return tuple(size(axis) for axis in axes.split())


def run(path: Path) -> dict[str, Any]:
    """Run a file as its contract says; return its results as NumPy arrays, by name."""
    contract = contract_of(path)
    space: dict[str, Any] = {"__name__": "zoo"}
    exec(compile(path.read_text(encoding="utf-8"), path.name, "exec"), space)
    entry = space[entry_of(path)]
    torch.manual_seed(0)
    if isinstance(entry, type):
        entry = entry(**{name: size(text) for name, text in contract["init"].items()})
        entry.train(contract.get("mode") == "train")
    random = np.random.default_rng(0)
    given = []
    for name, axes in contract["inputs"].items():
        kind = contract.get("kinds", {}).get(name, "float")
        value: Any = random.normal(size=shape(axes)).astype("float32")
        if name in contract.get("values", {}):
            given.append(size(contract["values"][name]))
            continue
        if kind in ("keep", "drop"):
            value = np.full(shape(axes), kind == "keep")
            value[..., -2:] = kind != "keep"
        elif kind == "weights":
            value = np.full(shape(axes), 1 / shape(axes)[-1], "float32")
        given.append(torch.from_numpy(value) if "torch" in space or "nn" in space else value)
    results = entry(*given)
    results = results if isinstance(results, tuple) else (results,)
    arrays = [np.asarray(r.detach() if hasattr(r, "detach") else r) for r in results]
    return dict(zip((told["name"] for told in contract["returns"]), arrays, strict=True))


@by_name([*GOOD, *BAD])
def test_a_file_of_the_zoo_runs_as_its_contract_says(path):
    results = run(path)
    for told in contract_of(path)["returns"]:
        assert results[told["name"]].shape == shape(told["axes"])
        assert np.isfinite(results[told["name"]]).all()


@by_name([path for path in GOOD if "weights" in contract_of(path)])
def test_the_weights_of_good_code_sum_to_one(path):
    contract = contract_of(path)
    results = run(path)
    sums = results[contract["weights"]["output"]].sum(contract["weights"]["sums_to_one_over"])
    np.testing.assert_allclose(sums, 1, atol=1e-5)


@by_name(BAD)
def test_a_bad_file_says_once_what_it_is_an_example_of(path):
    codes = EXPECT.findall(path.read_text(encoding="utf-8"))
    assert codes == [path.stem[:5]]
    assert codes[0] in {rule.code for rule in every()}
