"""The lessons in a real browser: nothing is asked of a network, and a phone shows all of it."""

import pytest

from browser import CHROMIUM, WHY, Browser
from regard.learn.site import pages

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WHY)

_WIDER = """
[...document.querySelectorAll('main > *')]
  .filter(e => e.getBoundingClientRect().right > innerWidth + 1)
  .map(e => e.tagName + ' ' + e.textContent.slice(0, 40))
"""
# Words of a picture against what stands behind them.
_INK = "getComputedStyle(document.querySelector('svg.diagram .d-text-ink')).fill"
_PAPER = "getComputedStyle(document.body).backgroundColor"


@pytest.fixture(scope="module")
def browser():
    opened = Browser()
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("lessons")
    for name, html in pages():
        (made / name).write_text(html, encoding="utf-8")
    return made


def test_every_page_fits_a_phone_and_asks_for_nothing_but_itself(browser, folder):
    for path in sorted(folder.glob("*.html")):
        browser.open(path, width=360)
        assert browser.run("document.scrollingElement.scrollWidth") <= 360, path.name
        assert browser.run(_WIDER) == [], path.name
        assert browser.errors == []
        assert [each for each in browser.requests if path.name not in each] == []


def test_every_picture_and_equation_has_a_name(browser, folder):
    for path in sorted(folder.glob("*.html")):
        browser.open(path)
        assert browser.run("[...document.querySelectorAll('svg')].every(e => e.ariaLabel)")
        unnamed = (
            "[...document.querySelectorAll('math')].filter(e => !e.getAttribute('alttext'))"
        )
        assert browser.run(f"{unnamed}.length") == 0


def test_diagrams_and_equations_take_the_colours_of_the_page(browser, folder):
    seen = {}
    for dark in (False, True):
        browser.open(folder / "08-multi-head.html", dark=dark)
        seen[dark] = (browser.run(_INK), browser.run(_PAPER))
    assert seen[False] == ("rgb(31, 35, 40)", "rgb(255, 255, 255)")
    assert seen[True] == ("rgb(230, 233, 238)", "rgb(20, 24, 31)")


def test_subscripts_stand_lower_than_their_letters(browser, folder):
    browser.open(folder / "02-additive.html")
    lower = """
    [...document.querySelectorAll('msub')].every(e => {
      const [base, script] = [...e.children].map(c => c.getBoundingClientRect());
      return script.bottom > base.bottom - 1 && script.height < base.height;
    })
    """
    assert browser.run(lower)
