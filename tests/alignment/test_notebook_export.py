"""Alignments in a notebook that was run and exported: a page without its kernel."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

from browser import CHROMIUM, WHY, Browser

_MISSING = [
    name for name in ("nbconvert", "ipykernel") if importlib.util.find_spec(name) is None
]
pytestmark = [
    pytest.mark.skipif(bool(_MISSING), reason=f"pip install {' '.join(_MISSING)} to run it"),
    pytest.mark.skipif(CHROMIUM is None, reason=WHY),
    pytest.mark.slow,
]

CELLS = (
    "from regard.alignment import Alignment, Collection, Record\n"
    "rows = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]\n"
    "tokens = {'target': ['le', 'chat'], 'source': ['the', 'cat', '<b>']}\n"
    "seen = Alignment(rows, **tokens)\n"
    "seen",
    "Collection([Record(rows, **tokens, name=name) for name in ('one', 'two')])",
    "seen",
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The page of each theme; the notebook is run once."""
    folder = tmp_path_factory.mktemp("notebook")
    cells = [
        {"cell_type": "code", "id": f"c{place}", "metadata": {}, "execution_count": None}
        | {"outputs": [], "source": source}
        for place, source in enumerate(CELLS)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    form = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4}
    (folder / "n.ipynb").write_text(json.dumps(form | {"nbformat_minor": 5}))
    convert = [sys.executable, "-m", "nbconvert", "--log-level", "ERROR"]
    # Its own addresses on the web are no part of what is shown here.
    plain = ["--HTMLExporter.require_js_url=", "--HTMLExporter.mathjax_url="]
    # Templates lie beside the package where it was installed into a folder of its own.
    shared = os.path.join(
        os.path.dirname(os.path.dirname(importlib.util.find_spec("nbconvert").origin)),
        *("share", "jupyter"),
    )
    environment = os.environ | {"JUPYTER_PATH": shared}
    run = ["--to", "notebook", "--execute", "--inplace", "n.ipynb"]
    subprocess.run([*convert, *run], cwd=folder, env=environment, check=True)
    for theme in ("light", "dark"):
        html = ["--to", "html", f"--HTMLExporter.theme={theme}", "--output", theme, *plain]
        subprocess.run([*convert, *html, "n.ipynb"], cwd=folder, env=environment, check=True)
    return folder


@pytest.fixture(scope="module")
def browser():
    one = Browser()
    yield one
    one.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_exported_notebook_shows_every_picture_without_a_script_of_ours(
    exported, browser, theme
):
    browser.open(exported / f"{theme}.html", dark=theme == "dark")
    outputs = "[...document.querySelectorAll('svg[role=img]')]"
    assert browser.run(f"{outputs}.length") == 3
    assert browser.run(
        f"{outputs}.every((e) => e.getBoundingClientRect().width > 100 && e.checkVisibility())"
    )
    assert browser.run(f"{outputs}.every((e) => !e.parentElement.querySelector('script'))")
    assert browser.run("document.querySelectorAll('svg[role=img] b').length") == 0
    said = browser.run("document.body.innerText")
    assert said.count("2 target tokens, 3 source tokens, monotonicity 1.00") == 3
    ids = browser.run("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
    ours = [url for url in browser.requests if not url.startswith("file:")]
    assert ours == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_said_stands_out_from_the_page_and_labels_from_the_picture(
    exported, browser, theme
):
    browser.open(exported / f"{theme}.html", dark=theme == "dark")
    found = browser.run(
        "(() => { const svg = document.querySelector('svg[role=img]');"
        "const said = svg.parentElement.querySelector('p');"
        "return [getComputedStyle(said).color, getComputedStyle(document.body).backgroundColor,"
        "getComputedStyle(svg.querySelector('text')).fill,"
        "getComputedStyle(svg.querySelector('rect')).fill]; })()"
    )
    told, page, label, paper = map(_lightness, found)
    assert abs(told - page) > 0.6
    assert abs(label - paper) > 0.5
    assert (page < 0.5) is (theme == "dark")


def _lightness(color):
    channels = [int(part.strip(" rgba()")) for part in color.split(",")[:3]]
    return sum(channels) / 3 / 255
