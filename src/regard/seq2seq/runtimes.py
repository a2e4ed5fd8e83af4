"""Loading a model for answering, whichever form it has; PyTorch only where it is needed."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import InputError, explain
from regard.files import as_argument

if TYPE_CHECKING:
    from regard.seq2seq.rewriter import Rewriter

__all__ = ["RUNTIMES", "load", "runtime_of", "set_threads"]

RUNTIMES = ("numpy", "onnx", "torch")

# What a directory of each holds.
_MARKS = {"numpy": "model.npz", "onnx": "step.onnx", "torch": "config.json"}

_LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def runtime_of(path: str | Path) -> str:
    """Return which of the :data:`RUNTIMES` a file or directory is made for."""
    path = Path(path)
    if (path / _MARKS["torch"]).exists():
        return "torch"  # a trained model, newer than anything that was exported beside it
    if path.suffix == ".npz" or (path / _MARKS["numpy"]).exists():
        return "numpy"
    if path.suffix == ".onnx" or (path / _MARKS["onnx"]).exists():
        return "onnx"
    return "torch"


def load(path: str | Path, *more: str | Path, runtime: str | None = None) -> "Rewriter":
    """Load a model.

    Parameters
    ----------
    path : path
        A model directory, or what ``regard export`` wrote.
    *more : path
        Further model directories to answer together with the first; ``torch`` only.
    runtime : {"numpy", "onnx", "torch"}, optional
        By default the one that the files are made for.

    Returns
    -------
    model : Rewriter
        Of the runtime that was asked for, with the same answers whichever it is.

    Raises
    ------
    InputError
        The files are missing, damaged, or made for another runtime.

    Notes
    -----
    A directory that holds both forms that ``regard export`` writes is read as ``numpy``.
    """
    if not Path(path).exists():
        raise InputError(
            explain(
                f"{path}: there is no such file or directory",
                expected="a model directory, or what `regard export` wrote",
                got="nothing",
                help="check the path, or train a model first",
            )
        )
    made_for = runtime_of(path)
    runtime = runtime or made_for
    if runtime not in RUNTIMES:
        raise InputError(
            explain(
                "load(): `runtime` is refused",
                expected=" or ".join(RUNTIMES),
                got=repr(runtime)[:80],
            )
        )
    if runtime != made_for and not _holds(path, runtime):
        exports = runtime != "torch" and made_for == "torch"
        raise InputError(
            explain(
                f"{path}: this is not made for the runtime {runtime}",
                expected=f"what `regard export --to {runtime}` wrote"
                if runtime != "torch"
                else "a model directory, as `regard train --out` writes it",
                got=f"something for the runtime {made_for}",
                help=f"regard export {as_argument(path)} --to {runtime} --out PATH"
                if exports
                else None,
            )
        )
    if more and runtime != "torch":
        raise InputError(
            explain(
                f"{path}: exported models answer alone",
                expected="one model, or model directories",
                got=f"{1 + len(more)} models and the runtime {runtime}",
            )
        )
    if runtime == "numpy":
        from regard.seq2seq.runtime.transducer import NumpyTransducer  # noqa: PLC0415 - late

        return NumpyTransducer.load(path)
    if runtime == "onnx":
        from regard.seq2seq.runtime.onnx_model import OnnxTransducer  # noqa: PLC0415 - late

        return OnnxTransducer.load(path)
    from regard.seq2seq.transducer import Transducer  # noqa: PLC0415 - takes seconds

    return Transducer.load(path, *more)


def set_threads(count: int, runtime: str) -> None:
    """Choose how many threads arithmetic may have; for NumPy only before it is loaded."""
    if runtime == "torch":
        import torch  # noqa: PLC0415 - takes seconds

        torch.set_num_threads(count)
    elif "numpy" not in sys.modules:
        for name in _LIBRARIES:
            os.environ[name] = str(count)


def _holds(path: str | Path, runtime: str) -> bool:
    """Return whether a directory also has another runtime's files."""
    return (Path(path) / _MARKS[runtime]).exists()
