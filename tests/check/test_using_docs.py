"""What docs/using-check.md shows is what happens."""

import re
from pathlib import Path

from regard.cli.verbs import _VERBS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "using-check.md").read_text(encoding="utf-8")


def test_every_python_block_prints_what_stands_below_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", PAGE, flags=re.DOTALL)
    assert len(blocks) == 3
    scope = {}
    for code, printed in blocks:
        # A note names the line of a file, so there has to be one.
        Path("decoder.py").write_text(code)
        exec(compile(code, str(tmp_path / "decoder.py"), "exec"), scope)
        assert capsys.readouterr().out == printed


def test_every_verb_that_it_names_exists():
    verbs = set(re.findall(r"`regard ([a-z]+)\b", PAGE))
    assert verbs == {"check", "explain", "skill", "mcp"}
    assert verbs <= set(_VERBS)
