import subprocess
import sys
from pathlib import Path

import pytest

from regard.check.rules import every

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "docs" / "rules.py"

pytestmark = pytest.mark.skipif(not SCRIPT.exists(), reason="the docs are not shipped")


def test_the_committed_pages_are_those_of_the_rules():
    ran = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_every_rule_has_a_page_that_the_index_links():
    pages = {path.stem for path in (ROOT / "docs" / "rules").glob("RG*.md")}
    assert pages == {rule.code for rule in every()}
    index = (ROOT / "docs" / "rules" / "README.md").read_text(encoding="utf-8")
    assert all(f"]({code}.md)" in index for code in pages)
