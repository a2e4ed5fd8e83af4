"""The user's code from its text: outputs, crashes with their lines, gradients, time."""

import contextlib
import textwrap

import numpy as np
import pytest

from regard.check.contract import Contract
from regard.check.sizes import Sizes
from regard.check.subject import (
    Crash,
    Instance,
    Loaded,
    Outcome,
    TookTooLong,
    limit,
    load,
    surroundings,
)

torch = pytest.importorskip("torch")


def loaded(text: str, entry: str) -> Loaded:
    result = load(textwrap.dedent(text), "subject_of_test.py", entry)
    assert isinstance(result, Loaded), result
    return result


def instance(text: str, entry: str, **form: object) -> Instance:
    return Instance(loaded(text, entry), Contract.from_mapping(form), Sizes())


NUMPY = """
    import numpy as np

    def double(x, y):
        x *= 2
        return x, {"both": x + y}
    """


def test_outputs_come_back_by_the_declared_names_whatever_holds_them() -> None:
    made = instance(NUMPY, "double", returns=[{"name": n, "axes": "d_h"} for n in "ab"])
    out = made.call({"x": np.arange(3.0), "y": np.ones(3)})
    assert isinstance(out, Outcome)
    np.testing.assert_array_equal(out["b"], [1.0, 3.0, 5.0])


def test_an_argument_that_was_changed_is_named_and_the_caller_keeps_its_own() -> None:
    x = np.arange(3.0)
    out = instance(NUMPY, "double").call({"x": x, "y": np.ones(3)})
    assert isinstance(out, Outcome)
    assert out.mutated == ("x",)
    np.testing.assert_array_equal(x, np.arange(3.0))


def test_a_crash_bears_every_line_of_the_user_it_passed() -> None:
    text = """\
    import numpy as np

    def inner(x):
        return x @ x

    def outer(x):
        return inner(x)
    """
    crash = instance(text, "outer").call({"x": np.ones((2, 3))})
    assert isinstance(crash, Crash)
    assert (crash.kind, crash.lines, crash.stage) == ("ValueError", (7, 4), "call")
    assert (crash.column, crash.end_column) == (12, 17)


@pytest.mark.parametrize(
    ("text", "kind", "line"),
    [
        ("def f(:", "SyntaxError", 1),
        ("import nowhere_at_all", "ModuleNotFoundError", 1),
        ("x = 1\nraise SystemExit(3)", "SystemExit", 2),
        ("y = 2", "AttributeError", 1),
    ],
)
def test_a_text_that_does_not_load_says_why(text: str, kind: str, line: int) -> None:
    crash = load(text, "subject_of_test.py", "f")
    assert isinstance(crash, Crash)
    assert (crash.kind, crash.line, crash.stage) == (kind, line, "load")


MODULE = """
    import torch
    import torch.nn as nn

    class Gate(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.gain = nn.Parameter(torch.zeros(1))
            self.inner = nn.Linear(width, width)
            self.dead = nn.Linear(width, width)

        def forward(self, x):
            return x + self.gain * self.inner(x)
    """
FORM = {"init": {"width": "d_h"}, "inputs": {"x": "batch d_h"}}


def test_zeros_at_initialisation_hide_nothing() -> None:
    made = instance(MODULE, "Gate", **FORM)
    x = np.ones((2, 38))
    out = made.call({"x": x})
    assert isinstance(out, Outcome)
    assert out.outputs[0] is not None
    assert np.abs(out.outputs[0] - x).max() > 0.01


def test_parameters_of_one_name_hold_the_same_numbers_in_every_version_of_a_class() -> None:
    one = instance(MODULE, "Gate", **FORM)
    other = instance(MODULE.replace("x + self.gain", "x - self.gain"), "Gate", **FORM)
    for (name, a), (_, b) in zip(
        one.module.named_parameters(), other.module.named_parameters(), strict=True
    ):
        assert torch.equal(a, b), name


def test_a_parameter_that_is_not_used_gets_no_gradient() -> None:
    found = instance(MODULE, "Gate", **FORM).gradients({"x": np.ones((2, 38))})
    assert isinstance(found, dict)
    assert found["param:dead.weight"] is None
    for name in ("input:x", "param:gain", "param:inner.weight"):
        gradient = found[name]
        assert gradient is not None
        assert np.abs(gradient).max() > 0


def test_plain_lists_are_given_plain_lists() -> None:
    text = "def total(x):\n    return [sum(row) for row in x]\n"
    out = instance(text, "total").call({"x": np.array([[1.0, 2.0], [3.0, 4.0]])})
    assert isinstance(out, Outcome)
    assert out.outputs[0] is not None
    np.testing.assert_array_equal(out.outputs[0], [3.0, 7.0])


def test_a_method_is_called_on_a_built_object() -> None:
    text = MODULE + "\n        def halve(self, x):\n            return x / 2\n"
    out = instance(text, "Gate.halve", **FORM).call({"x": np.full((1, 38), 4.0)})
    assert isinstance(out, Outcome)
    assert out.outputs[0] is not None
    assert (out.outputs[0] == 2.0).all()


def test_no_except_of_the_user_stops_the_clock() -> None:
    text = """
    def spin(x):
        while True:
            try:
                while True:
                    pass
            except Exception:
                pass
    """
    made = instance(text, "spin")
    with pytest.raises(TookTooLong), limit(0.1):
        made.call({"x": np.ones(2)})


def spin(seconds: float) -> None:
    with limit(seconds):
        while True:
            pass


def spin_twice() -> None:
    with contextlib.suppress(TookTooLong):
        spin(0.05)
    while True:
        pass


def test_blocks_of_time_nest_and_the_outer_one_goes_on() -> None:
    with pytest.raises(TookTooLong), limit(0.2):
        spin_twice()


def test_a_module_that_its_own_package_imports_from_loads(tmp_path, monkeypatch) -> None:
    package = tmp_path / "package_of_test"
    package.mkdir()
    (package / "__init__.py").write_text("from package_of_test.layer import Layer\n")
    (package / "sizes.py").write_text("SIZE = 7\n")
    source = "from package_of_test.sizes import SIZE\n\n\nclass Layer:\n    size = SIZE\n"
    path = str(package / "layer.py")
    (package / "layer.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    with surroundings(path, package="package_of_test"):
        result = load(source.replace("size = SIZE", "size = SIZE + 4"), path, "Layer")
    assert isinstance(result, Loaded), result
    assert result.target.size == 11
