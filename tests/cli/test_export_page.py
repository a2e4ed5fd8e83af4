"""The pages about exports and decoding: their commands run, their tables are the results'."""

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from regard.cli.main import run
from regard.seq2seq.architecture import ATTENTIONS
from regard.seq2seq.export.onnx_step import _REFUSED

pytest.importorskip("onnxruntime")

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "export.md"


def _blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_commands_of_the_page_run(model, data, tmp_path, monkeypatch, capsys):
    shutil.copytree(model, tmp_path / "my-model")
    shutil.copy(data, tmp_path / "held-out.tsv")
    monkeypatch.chdir(tmp_path)
    (commands,), (program,) = _blocks("bash"), _blocks("python")
    for command in commands.splitlines():
        assert run(shlex.split(command)[1:]) == 0, command
    wanted = [line for line in capsys.readouterr().out.splitlines() if line.startswith("bca\t")]
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(program, {})
    answers = [line.split(" ")[0] for line in said.getvalue().splitlines()]
    assert answers == ["abc", "bca"]
    assert wanted[0].split("\t")[1] in said.getvalue().splitlines()[1]


def test_the_page_says_of_every_attention_where_it_runs():
    rows = [
        line.split("|")[1:-1]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| `none`") or line.startswith("| `local-m`")
    ]
    found = {name: row[2].strip() for row in rows for name in re.findall(r"`([\w-]+)`", row[0])}
    assert found == {
        name: "refused by name" if name in _REFUSED else "yes" for name in ATTENTIONS
    }


@pytest.mark.parametrize("page", ["export_page.py", "unseen_page.py"])
def test_the_tables_are_those_of_the_results(page):
    script = ROOT / "docs" / page
    subprocess.run([sys.executable, script, "--check"], check=True, stdin=subprocess.DEVNULL)
