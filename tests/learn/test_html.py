"""Lessons as pages: offline, named for who does not see, and complete."""

import re
from pathlib import Path

import pytest

from regard.learn.catalog import FOLDER, find, lessons
from regard.learn.fences import fences
from regard.learn.html import slug, to_html
from regard.learn.page import page
from regard.learn.plain import plain
from regard.learn.site import names, pages


def _html(text, **options):
    return to_html(text, folder=FOLDER, **options)


@pytest.fixture(scope="module")
def made():
    return dict(pages())


def test_a_page_names_no_address_and_forbids_every_request(made):
    assert list(made) == names()
    for name, html in made.items():
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
        assert policy.startswith("default-src 'none'"), name
        assert not re.search(r'\b(?:src|href)="(?!#|[\w-]+\.html)', html), name
        assert "url(" not in html
        assert "@import" not in html


def test_every_link_of_a_page_leads_to_a_page_and_an_anchor_that_are_there(made):
    for name, html in made.items():
        for target in re.findall(r'href="([^"]*)"', html):
            file, _, anchor = target.partition("#")
            assert (file or name) in made, (name, target)
            if anchor:
                assert f'id="{anchor}"' in made[file or name], (name, target)


def test_every_picture_is_set_into_the_page_with_its_words(made):
    for lesson in lessons():
        html = made[f"{lesson.stem}.html"]
        told = re.findall(r"!\[(.*?)\]", lesson.text)
        assert html.count('class="picture') == len(told)
        assert html.count("<svg aria-label=") == len(told)


def test_every_block_of_a_lesson_stands_in_its_page(made):
    for lesson in lessons():
        html = made[f"{lesson.stem}.html"]
        shown = [f for f in fences(lesson.text) if f.language in {"python", "console"}]
        assert html.count('<div class="code">') == len(shown)
        assert html.count("<math") >= lesson.text.count("$$") // 2


def test_html_in_a_text_is_shown_and_not_obeyed():
    assert "<script>" not in _html("a <script>x</script>")
    assert "<script>" not in page("", title="<script>")


def test_an_equation_is_drawn_and_a_price_is_not():
    assert _html("$h_i$ is").startswith("<p><math")
    assert "<math" not in _html("a $ b $ c")
    assert 'display="block"' in _html("$$\na\n$$")
    assert "<math" not in _html("`$a$`")


def test_a_picture_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match=r"figures/none\.svg"):
        _html("![none](figures/none.svg)")


def test_a_block_of_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="'ruby'"):
        _html("```ruby\nx\n```")


def test_a_directive_gets_its_words_and_its_body():
    text = "```{interactive} drag\n**b**\n```"
    assert _html(text) == "<p><strong>b</strong></p>\n"
    made = _html(text, directives={"interactive": lambda said, inner: f"[{said}|{inner}]"})
    assert made == "[drag|<p><strong>b</strong></p>\n]"


def test_a_script_may_run_only_as_it_is_written():
    html = page("", title="t", code="start()")
    assert "script-src 'sha256-" in html
    assert "script-src" not in page("", title="t")


def test_anchors_are_those_that_myst_makes():
    assert slug("What it costs, and what for") == "what-it-costs-and-what-for"


def test_a_lesson_for_a_terminal_has_no_command_of_latex_left():
    for lesson in lessons():
        prose = re.sub(
            r"^```(?:python|console).*?^```$", "", plain(lesson.text), flags=re.S | re.M
        )
        assert not re.search(r"\\[a-zA-Z]+", prose), lesson.name
        assert "$" not in prose
        assert "{interactive}" not in prose


def test_a_lesson_is_found_by_number_name_and_beginning():
    assert find("5") is find("05") is find("masks") is find("mas")
    with pytest.raises(ValueError, match="names several lessons"):
        find("m")
    with pytest.raises(ValueError, match="names no lesson"):
        find("nonsense")


def test_the_package_has_what_its_pages_need():
    for name in ("style.css", "math.css"):
        assert (Path(FOLDER).parent / name).is_file()


def test_lessons_in_the_terminal_have_all_of_their_code():
    for lesson in lessons():
        text = plain(lesson.text)
        code = [fence.body for fence in fences(lesson.text) if fence.language == "python"]
        kept = [fence.body for fence in fences(text) if fence.language == "python"]
        assert kept == code, lesson.name
