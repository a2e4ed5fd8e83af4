"""Build the native library with whatever C++ compiler is there, or say why not.

The package's build runs this; where it found no compiler then, ``python -m
regard.kernels.compile`` builds the library into an installed package later. Only the standard
library is used. The result links to nothing but C: no Python, no PyTorch, so that one file
serves every version of both.
"""

import ctypes
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

__all__ = ["LIBRARY", "build"]

LIBRARY = "_additive.so"
"""The library's file name, beside this module."""

_HERE = Path(__file__).parent
_COMPILERS = ("c++", "g++", "clang++")
_FLAGS = (
    *("-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden"),
    *("-fno-exceptions", "-fno-rtti", "-Wno-psabi", "-pthread"),
)
_X86 = ("x86_64", "amd64")
_AVX512 = (
    *("-mavx512f", "-mavx512vl", "-mavx512dq", "-mavx512bw", "-mfma"),
    "-mprefer-vector-width=512",
)
# Name, floats in a vector, queries in a tile of gradients (of scores twice as many), flags.
# Plain is what every processor of the
# architecture has: SSE2 on x86-64, NEON on arm64.
_VARIANTS = (
    ("plain", 4, 2, ()),
    ("avx2", 8, 2, ("-mavx2", "-mfma")),
    ("avx512", 16, 4, _AVX512),
    ("avx512r", 16, 4, (*_AVX512, "-DREGARD_APPROXIMATE=1")),
)


def build(target: Path) -> str | None:
    """Compile the library to `target`.

    Parameters
    ----------
    target : Path
        The file to write; replaced only by a library that loads.

    Returns
    -------
    reason : str or None
        Why there is no library, or None where there is one.
    """
    if os.name == "nt":
        return "the native library is not built on Windows"
    wanted = shlex.split(os.environ.get("CXX", ""))
    commands = [wanted] if wanted else [[name] for name in _COMPILERS]
    found = [command for command in commands if shutil.which(command[0])]
    if not found:
        tried = ", ".join(command[0] for command in commands)
        return f"no C++ compiler was found (tried {tried})"
    reasons = []
    for command in found:
        with tempfile.TemporaryDirectory() as folder:
            reason = _compile(command, Path(folder) / LIBRARY)
            if reason is None:
                # Moved within one folder, so that a running process never sees half a file.
                part = target.with_name(f"{target.name}.{os.getpid()}")
                shutil.copy(Path(folder) / LIBRARY, part)
                part.replace(target)
                return None
        reasons.append(f"{command[0]}: {reason}")
    return "; ".join(reasons)


def _compile(command: list[str], library: Path) -> str | None:
    source = _HERE / "csrc"
    objects: list[str | Path] = []
    is_x86 = platform.machine().lower() in _X86
    try:
        for name, lanes, queries, flags in _VARIANTS if is_x86 else _VARIANTS[:1]:
            made = library.with_name(f"{name}.o")
            given = [f"-DREGARD_VARIANT={name}", f"-DREGARD_LANES={lanes}"]
            given += [f"-DREGARD_QUERIES={queries}", *flags]
            _run([*command, *_FLAGS, *given, "-c", source / "additive.cpp", "-o", made])
            objects.append(made)
        _run(
            [
                *command,
                *_FLAGS,
                source / "dispatch.cpp",
                *objects,
                "-shared",
                "-lm",
                "-o",
                library,
            ]
        )
        ctypes.CDLL(str(library))
    except (OSError, subprocess.SubprocessError) as error:
        told = getattr(error, "stderr", None) or str(error)
        return str(told).strip().splitlines()[0]
    return None


def _run(command: Sequence[str | Path]) -> None:
    subprocess.run(
        command,
        check=True,
        capture_output=True,
        text=True,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    _why = build(_HERE / LIBRARY)
    sys.exit(None if _why is None else f"not built: {_why}")
