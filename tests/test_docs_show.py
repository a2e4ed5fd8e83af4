"""What docs/show.md says is true: its code runs, its commands work, its figures are right."""

import json
import re
import shlex
from pathlib import Path

import pytest

from regard.cli.main import run

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/show.md").read_text(encoding="utf-8")
RESULTS = json.loads((ROOT / "docs/results/explorer.json").read_text(encoding="utf-8"))


def test_the_code_prints_what_stands_there_and_the_commands_work(tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    monkeypatch.chdir(tmp_path)
    code, printed = re.search(
        r"```python\n(import numpy.*?)```\n\n```\n(.*?)```", PAGE, re.S
    ).groups()
    exec(code, {})
    assert capsys.readouterr().out == printed
    commands = re.findall(r"^\$ (regard show looked\.npz.*)$", PAGE, re.M)
    assert len(commands) == 4
    for command in commands:
        words = shlex.split(command)[1:]
        assert run(words) == 0
        assert (tmp_path / words[-1]).stat().st_size > 1000


def test_the_weights_of_pytorch_are_a_record():
    pytest.importorskip("torch", reason="needs PyTorch")
    code = re.search(r"```python\n(import torch.*?)```", PAGE, re.S)[1]
    found = {}
    exec("from regard.alignment import Record\n" + code, found)
    assert found["own"].weights.shape == (1, 2, 5, 5)


def test_a_model_of_transformers_is_recorded():
    pytest.importorskip("transformers", reason="needs pip install 'regard[hf]'")
    code = re.search(r"```python\n(import transformers.*?)```", PAGE, re.S)[1]
    found = {}
    exec("import torch\n" + code, found)
    assert found["record"].weights.shape == (1, 3, 5, 5)
    assert found["record"].layers == (1,)


def test_the_measured_figures_are_those_of_the_committed_run():
    size = RESULTS["bytes"]["50 sentences, 40 tokens, 8 heads"]
    assert f"{size / 1000:.0f} kB" in PAGE
    assert size < 1_000_000
    large = RESULTS["pointer"]["200 x 200, 8 heads"]
    assert f"{large['median_ms']:.0f} ms" in PAGE
    assert f"{large['worst_ms']:.0f} ms" in PAGE
    assert large["worst_ms"] < 100


def test_every_picture_is_there_and_told_in_words():
    pictures = re.findall(r"!\[(.*?)\]\((.*?)\)", PAGE)
    assert len(pictures) >= 6
    for told, path in pictures:
        assert told
        assert (ROOT / "docs" / path).exists(), path
