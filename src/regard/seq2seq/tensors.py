"""Named tensors in a file: safetensors with a check sum, so that damage is noticed.

The format runs no code when it is read. A cut or overwritten header is found by the library; a
flipped bit among the numbers only by the check sum, which stands in the file's metadata.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from regard.errors import InputError, explain
from regard.files import unreadable, write_atomically

__all__ = ["load_tensors", "save_tensors", "under"]


def save_tensors(path: Path, tensors: Mapping[str, Tensor], info: Mapping[str, Any]) -> None:
    """Write tensors, and ``info`` as JSON in the file's metadata, in one atomic step."""
    on_cpu = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
    text = json.dumps(info, sort_keys=True)
    # One entry: the library writes several in an order of its own, and equal runs should make
    # equal files.
    metadata = {"regard": f"{_digest(on_cpu, text)} {text}"}
    write_atomically(path, safetensors.torch.save(on_cpu, metadata))


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save_tensors` wrote.

    Raises
    ------
    InputError
        The file is missing, unreadable, cut short, changed, or another program's.
    """
    try:
        # The library does not tell a file that may not be read from a damaged one.
        path.open("rb").close()
    except OSError as error:
        raise InputError(
            unreadable(
                path,
                error,
                expected=f"a file {path.name}",
                missing="name the directory that `regard train --out` wrote",
            )
        ) from error
    try:
        with safetensors.safe_open(path, framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 - no mapping
    except (safetensors.SafetensorError, OSError, ValueError, RuntimeError) as error:
        raise _damaged(path, str(error)) from error
    digest, _, text = metadata.get("regard", "").partition(" ")
    if digest != _digest(tensors, text):
        raise _damaged(path, "a check sum that does not match its content")
    info: dict[str, Any] = json.loads(text)
    return tensors, info


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose names begin with a prefix, named without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8"))
    for name in sorted(tensors):
        value = tensors[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _damaged(path: Path, got: str) -> InputError:
    return InputError(
        explain(
            f"{path}: the file is damaged or cut short",
            expected="a whole file as regard wrote it",
            got=got,
            help="copy it again, or train again",
        )
    )
