"""The package's names are found late, so that the Keras layer needs no PyTorch."""

import subprocess
import sys

import pytest

from regard import nn

WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
import regard.nn.keras
assert "AdditiveAttention" in regard.nn.keras.__all__
try:
    regard.nn.Memory
except ImportError:
    pass
else:
    raise AssertionError("torch was not blocked")
"""


def test_the_keras_layer_is_imported_without_torch():
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("name", nn.__all__)
def test_every_name_is_found_and_listed(name):
    assert getattr(nn, name) is not None
    assert name in dir(nn)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Attension'"):
        nn.Attension  # noqa: B018 - looking is the point
