"""The build of the native library: it succeeds or says why not, and never raises."""

import ctypes
import os
import shutil

import pytest

from regard.kernels import compile as compiling
from regard.kernels import native


def test_without_a_compiler_it_says_so_and_writes_nothing(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    reason = compiling.build(tmp_path / "library.so")
    assert reason == "no C++ compiler was found (tried c++, g++, clang++)"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="a shell script stands for the compiler")
def test_a_compiler_that_fails_leaves_the_library_that_was_there(monkeypatch, tmp_path):
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\necho 'cannot do that' >&2; exit 3\n", encoding="utf-8")
    broken.chmod(0o755)
    library = tmp_path / "library.so"
    library.write_text("before", encoding="utf-8")
    monkeypatch.setenv("CXX", str(broken))
    assert compiling.build(library) == f"{broken}: cannot do that"
    assert library.read_text(encoding="utf-8") == "before"


@pytest.mark.skipif(
    os.name == "nt" or not any(map(shutil.which, compiling._COMPILERS)),
    reason="there is no C++ compiler",
)
def test_with_a_compiler_the_library_is_built_and_loads(monkeypatch, tmp_path):
    monkeypatch.delenv("CXX", raising=False)
    library = tmp_path / "library.so"
    assert compiling.build(library) is None
    assert [each.name for each in tmp_path.iterdir()] == ["library.so"]
    assert ctypes.CDLL(str(library)).regard_interface() == native._INTERFACE
