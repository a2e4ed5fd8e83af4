"""Generated pages: written, or compared and said to be out of date; marks have to be there."""

import importlib.util
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def module():
    spec = importlib.util.spec_from_file_location("written", DOCS / "written.py")
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_a_page_is_written_and_then_up_to_date(module, tmp_path, monkeypatch, capsys):
    page = tmp_path / "page.md"
    monkeypatch.setattr(sys, "argv", ["script.py", "--check"])
    assert module.written(page, "a\n") == 1
    assert not page.exists()
    monkeypatch.setattr(sys, "argv", ["script.py"])
    assert module.written(page, "a\n") == 0
    monkeypatch.setattr(sys, "argv", ["script.py", "--check"])
    assert module.written(page, "a\n") == 0
    capsys.readouterr()
    assert module.written(page, "b\n") == 1
    assert page.read_text() == "a\n"
    assert capsys.readouterr().err == "page.md is out of date: run python script.py\n"


def test_a_block_takes_the_place_of_what_stands_between_marks(module, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before <a>old<b> after")
    assert module.between(page, "<a>", "<b>", "new") == "before <a>new<b> after"


@pytest.mark.parametrize("text", ["<a> and no end", "an end alone <b>", "<b> before <a>"])
def test_a_mark_that_is_missing_replaces_nothing(module, tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(SystemExit, match=r"has no <a> \.\.\. <b>"):
        module.between(page, "<a>", "<b>", "new")
