"""What docs/alignment.md says is true: commands work, code runs, tables are measured."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="aligners need PyTorch")

from regard.cli.main import run

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/alignment.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reader")
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


def test_the_first_commands_print_what_stands_there(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    block = re.search(r"```console\n(.*?)```", PAGE, re.S)[1]
    for command, printed in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", block, re.M):
        if command == "head -2 links.txt":
            assert (place / "links.txt").read_text().startswith(printed)
            continue
        assert run(shlex.split(command)[1:]) == 0
        out = re.sub(r"[\d.]+ seconds", "2.9 seconds", capsys.readouterr().out)
        assert out == printed


def test_the_other_commands_work(place, monkeypatch):
    monkeypatch.chdir(place)
    text = (place / "examples/align/corpus.tsv").read_text()
    for name in ("corpus.tsv", "few.tsv", "new.tsv"):
        (place / name).write_text(text)
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.S)[1:]
    commands = [c for block in blocks for c in re.findall(r"^\$ (regard [^#\n]*)", block, re.M)]
    assert len(commands) == 6
    if not (place / "aligner").exists():  # the first test may run in another process
        first = re.search(r"^\$ regard (align train .*)", PAGE, re.M)[1]
        assert run(shlex.split(first)) == 0
    for command in commands:
        words = shlex.split(command)[1:]
        assert run([*words, "--force"]) == 0


def test_the_code_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = {}
    exec(re.search(r"```python\n(.*?)```", PAGE, re.S)[1], found)
    assert len(found["links"]) == 60
    words = (
        len(found["pairs"].target[found["place"]]),
        len(found["pairs"].source[found["place"]]),
    )
    assert found["believed"].forward.shape == words


def test_the_tables_are_those_of_the_committed_run():
    script = ROOT / "docs/alignment_page.py"
    done = subprocess.run([sys.executable, script, "--check"], cwd=ROOT, check=False)
    assert done.returncode == 0, "run python docs/alignment_page.py"
