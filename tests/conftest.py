"""The libraries under test, and arrays whose axes cannot be mistaken for one another."""

import importlib.util
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

# Tests run one a core; threads below them would only fight. Before any library is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import hypothesis
import numpy as np
import pytest

# A busy machine is no defect of the code: no test is timed.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


class Library:
    """One array library: how to make its arrays and how to read them back."""

    def __init__(self, name: str, module: ModuleType, make: Callable[..., Any]) -> None:
        self.name = name
        self.module = module
        self._make = make

    def __repr__(self) -> str:
        return self.name

    def array(self, value: Any) -> Any:
        """Turn a NumPy array or nested list into this library's array, number type kept."""
        return self._make(np.asarray(value))

    def numpy(self, value: Any) -> np.ndarray:
        """Read an array back; also checks that it really is this library's."""
        if self.name == "numpy":
            assert isinstance(value, np.ndarray), type(value)
            return value
        if self.name == "array_api_strict":
            assert type(value).__module__.startswith("array_api_strict"), type(value)
            return np.asarray(value._array)
        assert type(value).__module__.split(".")[0] in ("torch", "jax", "jaxlib"), type(value)
        return np.asarray(value)


def _numpy() -> Library:
    return Library("numpy", np, np.asarray)


def _torch() -> Library:
    import torch

    return Library("torch", torch, lambda value: torch.from_numpy(np.array(value)))


def _jax() -> Library:
    import jax

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp

    return Library("jax", jnp, jnp.asarray)


def _strict() -> Library:
    import array_api_strict

    return Library("array_api_strict", array_api_strict, array_api_strict.asarray)


_MAKERS = {"array_api_strict": _strict, "numpy": _numpy, "torch": _torch, "jax": _jax}


@pytest.fixture(params=list(_MAKERS))
def xp(request: pytest.FixtureRequest) -> Library:
    """Each array library in turn, the strict one first: it forbids what only NumPy allows."""
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return _MAKERS[request.param]()


@pytest.fixture
def rng() -> np.random.Generator:
    """A seeded source of random numbers."""
    return np.random.default_rng(20150519)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """On a busy machine the clock of a check may strike inside a destructor."""
    late = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
    for item in items:
        if {"check", "zoo"} & set(item.path.parts[-4:]):
            item.add_marker(late)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say once which path computed what was tested."""
    import regard

    terminalreporter.write_line(regard.backend())
