"""What the lessons say is what their code does, and every picture is what was drawn."""

import re

import pytest

from regard.cli.main import run
from regard.learn.catalog import lessons
from regard.learn.compare import difference, unexplained_numbers
from regard.learn.diagrams.every import DIAGRAMS
from regard.learn.execute import execute
from regard.learn.fences import fences
from regard.learn.rewrite import FIGURES

ALL = [pytest.param(lesson, id=lesson.name) for lesson in lessons()]


def test_the_lessons_are_numbered_without_a_gap():
    assert [lesson.number for lesson in lessons()] == list(range(1, 13))


@pytest.mark.parametrize("lesson", ALL)
def test_every_block_of_a_lesson_prints_and_draws_what_stands_in_it(lesson, monkeypatch):
    pytest.importorskip("torch", reason="lessons train, and check PyTorch code")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    ran = list(execute(lesson.path.read_text(encoding="utf-8"), run=run))
    assert len(ran) >= 3
    for each in ran:
        assert not difference(each)
        name = each.block.options.get("figure")
        if name and "within" not in each.block.options:
            drawn = (FIGURES / f"{name}.svg").read_text(encoding="utf-8")
            assert each.figure == drawn, f"python docs/lessons.py {lesson.name}"


@pytest.mark.parametrize("lesson", ALL)
def test_no_decimal_number_of_the_prose_is_typed_by_hand(lesson):
    assert unexplained_numbers(lesson.text) == []


@pytest.mark.parametrize("lesson", ALL)
def test_every_picture_of_a_lesson_is_there_and_told_in_words(lesson):
    for told, path in re.findall(r"!\[(.*?)\]\((.*?)\)", lesson.text):
        assert len(told) > 30
        assert (lesson.path.parent / path).is_file()


@pytest.mark.parametrize("lesson", ALL)
def test_every_interactive_figure_says_in_text_what_it_shows(lesson):
    for fence in fences(lesson.text):
        if fence.language == "{interactive}":
            assert re.fullmatch(r"[a-z-]+", fence.options[""])
            assert "Without the figure" in " ".join(fence.body.split())


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_is_the_one_that_is_drawn(name):
    drawn = DIAGRAMS[name]()
    assert (FIGURES / f"{name}.svg").read_text(encoding="utf-8") == drawn
    assert any(f"figures/{name}.svg" in lesson.text for lesson in lessons())


def test_every_committed_figure_belongs_to_a_lesson():
    used = {
        path
        for lesson in lessons()
        for path in re.findall(r"figures/(\S+?\.svg)\)", lesson.text)
    }
    assert {path.name for path in FIGURES.glob("*.svg")} == used


def test_the_papers_of_the_lessons_are_cited_with_year_and_place():
    text = "".join(lesson.text for lesson in lessons())
    for identifier in ("1409.0473", "1508.04025", "1706.03762", "1409.3215", "1902.10186"):
        assert f"arXiv:{identifier}" in text or identifier == "1706.03762"
