"""Which of the paths to an additive score runs.

They are the plain formula, the formula in blocks (:mod:`regard.kernels.blocks`), the native
library (:mod:`regard.kernels.native`) and, for PyTorch, what ``torch.compile`` makes of it
(:mod:`regard.kernels.fused`). All give the same numbers; they differ in time and memory. A
decoder's step (:mod:`regard.kernels.steps`) and Bahdanau's loop
(:mod:`regard.kernels.gru_loop`) are chosen in the same way, but are never compiled by
themselves. The environment variable ``REGARD_KERNELS`` overrides the choice:

===========  ===============================================================================
unset        for float32 on the CPU, the plain formula for little work and native for more,
             and for every step on prepared keys; blocks for the rest, and where there is no
             native library
``native``   native for everything that it takes, however small; an error where it is missing
``blocks``   never native
``compile``  for PyTorch's float32 what its compiler makes, at the price of compiling at the
             first call; blocks for the rest. No second derivatives
``triton``   for PyTorch's float32 on a CUDA device :mod:`regard.kernels.triton_op`; blocks for
             the rest. Never chosen by itself, as it was never measured
``off``      the plain formula, as a reference to compare with
===========  ===============================================================================

The functions of :mod:`regard.attention` ask only from 10,000 pairs times features on, and only
for float32; the modules of :mod:`regard.nn` always do.
"""

import importlib.util
import os

from regard.errors import BackendError, ConventionError, explain
from regard.kernels import native

__all__ = ["VARIABLE", "additive_path", "backend"]

VARIABLE = "REGARD_KERNELS"

_CHOICES = ("off", "blocks", "compile", "triton", "native")
_FOR_TORCH = {
    "compile": "torch.compile for PyTorch's float32",
    "triton": "Triton for PyTorch's float32 on CUDA devices",
}
# Pairs times features, measured. Below it, a call costs more than it saves.
_WORTH_A_CALL = 10_000
_NAMES = {
    "plain": "baseline instructions",
    "avx2": "AVX2",
    "avx512": "AVX-512",
    "avx512r": "AVX-512",
}


def additive_path(work: int, *, suits_native: bool, prepared: bool = False) -> str:
    """Return "plain", "blocks", "compile", "triton" or "native" for one call.

    Parameters
    ----------
    work : int
        Number of pairs times d_attn.
    suits_native : bool
        Whether the arrays are such as the native library takes.
    prepared : bool
        Whether it is a step on prepared keys: one native call, which beats the several of the
        plain formula however little there is to do.

    Raises
    ------
    ConventionError
        The environment variable has another value.
    BackendError
        It asks for the native library or Triton, which is not available.
    """
    wish = _wish()
    if wish:
        return _obeyed(wish, suits_native=suits_native)
    if not suits_native:
        return "blocks"
    if work < _WORTH_A_CALL and not (prepared and native.available()):
        return "plain"
    return "native" if native.available() else "blocks"


def backend() -> str:
    """Say in words what computes additive scores here, and why.

    Returns
    -------
    text : str
        One line.

    Raises
    ------
    ConventionError
        The environment variable ``REGARD_KERNELS`` has a value it cannot have.
    BackendError
        It asks for the native library or Triton, which is not available.

    Examples
    --------
    >>> import regard
    >>> regard.backend().startswith("additive scores: ")
    True
    """
    wish = _wish()
    because = f" ({VARIABLE}={wish})" if wish else ""
    if wish == "off":
        return f"additive scores: plain formula{because}"
    if wish == "native":
        _require_native()
    if wish == "blocks":
        return f"additive scores: in blocks{because}"
    if wish in _FOR_TORCH:
        if wish == "triton":
            _require_triton()
        return f"additive scores: {_FOR_TORCH[wish]}, in blocks for the rest{because}"
    if not native.available():
        return f"additive scores: in blocks ({native.reason()})"
    least = "" if wish else f" from {_WORTH_A_CALL} pairs x features (else the plain formula)"
    name = _NAMES[native.variants()[-1]]
    return (
        f"additive scores: native with {name} for float32 on the CPU{least}; "
        f"in blocks for the rest{because}"
    )


def _obeyed(wish: str, *, suits_native: bool) -> str:
    if wish == "off":
        return "plain"
    if wish == "native":
        _require_native()
        return "native" if suits_native else "blocks"
    if wish == "triton":
        _require_triton()
    return wish


def _wish() -> str:
    wish = os.environ.get(VARIABLE, "")
    if wish and wish not in _CHOICES:
        raise ConventionError(
            explain(
                f"the environment variable {VARIABLE} has no such value",
                expected=f"{', '.join(_CHOICES[:-1])} or {_CHOICES[-1]}, or not set",
                got=f"{VARIABLE}={wish}",
            )
        )
    return wish


def _require_native() -> None:
    if not native.available():
        raise BackendError(
            explain(
                f"{VARIABLE}=native, but there is no native library",
                expected="the library that the package's build compiles",
                got=native.reason() or "none",
                help="`python -m regard.kernels.compile` builds it where a C++ compiler is",
            )
        )


def _require_triton() -> None:
    if importlib.util.find_spec("triton") is None:
        raise BackendError(
            explain(
                f"{VARIABLE}=triton, but Triton is not installed",
                expected="the package that PyTorch's builds for CUDA bring",
                got="no module named triton",
            )
        )
