"""The page on audits: its code runs, its commands end as it says."""

from pathlib import Path

import pytest

from regard.cli.main import run
from regard.learn.execute import execute

PAGE = Path(__file__).resolve().parents[2] / "docs" / "audit.md"


def test_the_code_of_the_page_runs_and_its_verdict_is_the_one_it_names(capsys):
    pytest.importorskip("torch", reason="the page has a PyTorch model")
    codes = []

    def counted(words):
        codes.append(run(words))
        return codes[-1]

    text = PAGE.read_text(encoding="utf-8")
    shown = [
        ran.printed for ran in execute(text, run=counted) if ran.block.language == "console"
    ]
    assert codes == [0, 0]
    assert "SUPPORTED AT L2 AND L3 (n=60)" in " ".join(shown[0].split())
    assert "`SUPPORTED AT L2 AND L3`" in text
    assert "pooled" in shown[1].lower()
