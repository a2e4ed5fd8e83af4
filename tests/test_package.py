import subprocess
import sys

import pytest

import regard

HEAVY = ("numpy", "torch", "jax", "array_api_compat", "matplotlib", "jaxtyping")


def _modules_after(code: str) -> set[str]:
    code += "\nimport sys; print(*sys.modules, file=sys.stderr)"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(ran.stderr.split())


def test_importing_regard_imports_no_array_library():
    assert not _modules_after("import regard").intersection(HEAVY)


def test_help_imports_no_array_library():
    loaded = _modules_after("from regard.cli.main import run; run(['--help'])")
    assert not loaded.intersection(HEAVY)


def test_the_mathematics_on_lists_imports_no_framework():
    loaded = _modules_after("import regard; regard.dot_attention([1.0], [[2.0], [3.0]])")
    assert not loaded.intersection({"torch", "jax"})


def test_the_core_works_where_torch_cannot_be_imported():
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['jax'] = None\n"
        "import numpy as np, regard\n"
        "context, weights = regard.attend(np.ones((3, 5)), np.ones((7, 5)))\n"
        "assert abs(float(weights.sum()) - 3) < 1e-12"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", regard.__all__)
def test_every_public_name_is_there(name):
    assert getattr(regard, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'atend'"):
        regard.atend  # noqa: B018 - looking is the point
