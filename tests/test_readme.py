"""What the README says is true: its code runs and prints what stands there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks():
    """Return the Python blocks in order, each with the output printed below it, if any."""
    pattern = r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?"
    return re.findall(pattern, README, flags=re.DOTALL)


def test_every_python_block_prints_what_stands_below_it(capsys):
    pytest.importorskip("torch")
    space = {}
    assert len(_blocks()) >= 4
    for code, printed in _blocks():
        if "Error" in printed:
            with pytest.raises(ValueError, match="does not fit") as caught:
                exec(code, space)
            kind = type(caught.value)
            assert f"{kind.__module__}.{kind.__name__}: {caught.value}\n" == printed
            continue
        exec(code, space)
        assert capsys.readouterr().out == printed


def test_the_results_are_those_that_are_committed():
    script = ROOT / "docs" / "readme_results.py"
    done = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert done.returncode == 0, "run python docs/readme_results.py"


def test_the_finding_is_the_one_that_the_command_prints():
    pytest.importorskip("torch")
    script = ROOT / "docs" / "readme_check.py"
    done = subprocess.run([sys.executable, str(script), "--check"], check=False)
    assert done.returncode == 0, "run python docs/readme_check.py"


def test_every_file_that_it_shows_is_there():
    for target in re.findall(r"\]\(([^)h][^)]*)\)", README):
        assert (ROOT / target).exists(), target
