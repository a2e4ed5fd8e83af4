"""A tiny model trained once through the command line, and data to train it on."""

import itertools
from pathlib import Path

import pytest

from regard.cli.main import run

TINY = ("--hidden", "7", "--state", "11", "--steps", "7", "--batch-tokens", "211")


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> Path:
    """Words of three letters, spelt in capitals with spaces; some have two references."""
    path = tmp_path_factory.mktemp("data") / "data.tsv"
    words = ["".join(letters) for letters in itertools.product("abcd", repeat=3)]
    lines = [f"{word}\t{' '.join(word.upper())}\n" for word in words]
    lines += [f"{word}\t{' '.join(word.upper()[:2])}\n" for word in words[:5]]
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def model(data, tmp_path_factory) -> Path:
    """A model directory."""
    path = tmp_path_factory.mktemp("run") / "model"
    arguments = ["train", data, "--out", path, "--target-symbols", "spaces", *TINY]
    assert run([str(argument) for argument in arguments]) == 0
    return path
