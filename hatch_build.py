"""The wheel's build step: compile the native library, or carry on without it.

Without a compiler the package still installs and computes the same in NumPy and PyTorch. Set
REGARD_NATIVE=0 to leave the library out, or REGARD_NATIVE=1 to fail where it cannot be built.
"""

import importlib.util
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class NativeLibrary(BuildHookInterface):
    """Compile into the wheel, or beside the sources where the install is editable."""

    _folder: str | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build before the wheel's files are collected."""
        wish = os.environ.get("REGARD_NATIVE", "")
        if wish == "0":
            return
        kernels = Path(self.root, "src", "regard", "kernels")
        compile_ = _load(kernels / "compile.py")
        if version == "editable":
            target = kernels / compile_.LIBRARY
        else:
            self._folder = tempfile.mkdtemp()
            target = Path(self._folder, compile_.LIBRARY)
        reason = compile_.build(target)
        if reason is not None:
            if wish == "1":
                raise RuntimeError(f"REGARD_NATIVE=1, but {reason}")
            self.app.display_warning(f"regard without its native library: {reason}")
            return
        if version != "editable":
            build_data["force_include"][str(target)] = f"regard/kernels/{compile_.LIBRARY}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{_platform()}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Clear up after the wheel is written."""
        del version, build_data, artifact_path
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("regard_kernels_compile", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _platform() -> str:
    from packaging.tags import sys_tags  # noqa: PLC0415 - hatchling brings it

    # The library serves every Python, but was linked to this machine's C library: not a
    # manylinux wheel.
    names = (tag.platform for tag in sys_tags())
    return next(n for n in names if "manylinux" not in n and "musllinux" not in n)
