"""Diagrams: well-formed, named, readable in both themes, and true to the masks."""

from xml.etree import ElementTree

import numpy as np
import pytest

from regard.attention import masks
from regard.learn.diagrams.chart import line_chart
from regard.learn.diagrams.drawing import Drawing
from regard.learn.diagrams.every import DIAGRAMS

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", DIAGRAMS)
def test_a_diagram_has_a_name_a_description_and_colours_for_dark_pages(name):
    tree = ElementTree.fromstring(DIAGRAMS[name]())
    assert tree.get("role") == "img"
    assert len(tree.find(f"{SVG}title").text) > 20
    assert len(tree.find(f"{SVG}desc").text) > 80
    style = tree.find(f"{SVG}style").text
    assert "prefers-color-scheme:dark" in style
    assert "[data-theme=dark]" in style
    for part in tree:
        # Every colour comes from a class, so that a page may change it.
        assert part.get("fill") is None
        assert part.get("stroke") is None


@pytest.mark.parametrize("name", DIAGRAMS)
def test_nothing_of_a_diagram_lies_outside_it(name):
    tree = ElementTree.fromstring(DIAGRAMS[name]())
    _, _, width, height = map(float, tree.get("viewBox").split())
    for part in tree.iter():
        for key, limit in (("x", width), ("y", height)):
            assert 0 <= float(part.get(key, 0)) <= limit
        for key, size, limit in (("x", "width", width), ("y", "height", height)):
            if part.get(size) and part is not tree:
                assert float(part.get(key)) + float(part.get(size)) <= limit


def test_the_mask_diagram_shows_the_masks():
    tree = ElementTree.fromstring(DIAGRAMS["mask-shapes"]())
    full = [part for part in tree.iter() if (part.get("class") or "").startswith("d-fill-blue")]
    like = np.zeros(1)
    wanted = (
        4 * 5
        + masks.causal(5, 7, corner="top_left", like=like).sum()
        + masks.causal(5, 7, corner="bottom_right", like=like).sum()
        + masks.window(5, 7, left=1, right=1, like=like).sum()
    )
    assert len(full) == wanted == 20 + 15 + 25 + 14


def test_scripts_are_lowered_and_raised_and_the_line_comes_back():
    drawing = Drawing(100, 50, title="t", told="d")
    drawing.words(0, 20, "s_{t-1} W^q split_heads <")
    tree = ElementTree.fromstring(drawing.svg())
    words = tree.find(f"{SVG}text")
    shifts = [float(span.get("dy")) for span in words]
    assert "".join(words.itertext()).replace("\u200b", "") == "st-1 Wq split_heads <"
    assert shifts[0] > 0 > shifts[2]
    assert sum(shifts) == 0


def test_a_chart_tells_its_numbers_in_words():
    chart = line_chart(
        {"dot": {5: 1.0, 10: 0.875}, "none": {5: 0.5, 10: 0.25}},
        title="t",
        across="length",
        up="right",
        mark=7,
        marked="trained",
    )
    told = ElementTree.fromstring(chart).find(f"{SVG}desc").text
    assert told == "dot: 100% at 5, 88% at 10. none: 50% at 5, 25% at 10."


def test_a_chart_of_more_lines_than_colours_is_refused():
    with pytest.raises(ValueError, match="got 4"):
        line_chart({str(n): {1: 0.5} for n in range(4)}, title="t", across="x", up="y")
