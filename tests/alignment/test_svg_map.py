import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from regard.alignment import Alignment
from regard.alignment.svg_map import svg_map

SVG = "{http://www.w3.org/2000/svg}"


def drawn(alignment, **options):
    root = ET.fromstring(svg_map(alignment, **options))
    cells = {
        rect.find(f"{SVG}title").text: rect
        for rect in root.iter(f"{SVG}rect")
        if rect.find(f"{SVG}title") is not None
    }
    return root, cells


def soft(steps, states):
    weights = np.exp(np.random.default_rng(3).normal(0, 2, (steps, states)))
    weights /= weights.sum(axis=1, keepdims=True)
    return Alignment(weights, [f"t{n}" for n in range(steps)], [f"s{n}" for n in range(states)])


def test_every_cell_tells_its_tokens_and_its_weight_where_it_stands():
    alignment = Alignment([[0.8, 0.2, 0], [0, 0.125, 0.875]], ["un", "chat"], ["a", "b", "c"])
    _, cells = drawn(alignment)
    assert set(cells) == {
        "un ← a: 0.800",
        "un ← b: 0.200",
        "chat ← b: 0.125",
        "chat ← c: 0.875",
    }
    first, below, right = (
        cells["un ← a: 0.800"],
        cells["chat ← b: 0.125"],
        cells["chat ← c: 0.875"],
    )
    side = float(first.get("width"))
    assert float(below.get("x")) - float(first.get("x")) == pytest.approx(side, abs=0.1)
    assert float(right.get("x")) - float(first.get("x")) == pytest.approx(2 * side, abs=0.1)
    assert float(below.get("y")) - float(first.get("y")) == pytest.approx(side, abs=0.1)


def test_more_weight_is_darker():
    weights = np.linspace(0.01, 1, 53)
    alignment = Alignment(
        np.stack([weights, 1 - weights], axis=1), [str(n) for n in range(53)], ["a", "b"]
    )
    _, cells = drawn(alignment)
    grey = [
        sum(int(cells[f"{n} ← a: {w:.3f}"].get("fill")[at : at + 2], 16) for at in (1, 3, 5))
        for n, w in enumerate(weights)
    ]
    assert (np.diff(grey) < 0).all()


def test_tokens_of_any_script_and_of_markup_stay_text():
    tokens = ["<b>&\"'", "قطة", "猫", "\x00\x1b", "\ud800"]
    alignment = Alignment(np.eye(5), tokens, tokens)
    root, cells = drawn(alignment, title="a < b")
    assert "<b>&\"' ← <b>&\"': 1.000" in cells
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert texts.count("قطة") == texts.count("猫") == 2
    assert "a < b" in texts
    assert svg_map(alignment).encode("utf-8")


def test_no_label_lies_on_the_next_one_at_200_tokens():
    root, _ = drawn(soft(199, 197))
    named = [text for text in root.iter(f"{SVG}text") if re.fullmatch(r"t\d+", text.text)]
    heights = [float(text.get("y")) for text in named]
    assert min(np.diff(heights)) >= 12
    said = next(text.text for text in root.iter(f"{SVG}text") if "target down" in text.text)
    every = int(re.search(r"one in (\d+) named", said)[1])
    assert [text.text for text in named] == [f"t{n}" for n in range(0, 199, every)]


def test_everything_lies_inside_the_picture():
    for alignment in (soft(1, 1), soft(2, 61), soft(61, 2), soft(199, 197)):
        root, cells = drawn(alignment)
        _, _, width, height = map(float, root.get("viewBox").split())
        for rect in cells.values():
            assert float(rect.get("x")) + float(rect.get("width")) <= width
            assert float(rect.get("y")) + float(rect.get("height")) <= height


def test_of_very_many_cells_the_largest_stay_and_the_file_says_so(monkeypatch):
    monkeypatch.setattr("regard.alignment.svg_map._MOST", 101)
    alignment = soft(41, 37)
    root, cells = drawn(alignment)
    told = sorted(float(title.rpartition(" ")[2]) for title in cells)
    assert len(told) == 101
    expected = np.sort(alignment.weights.ravel())[-101:]
    np.testing.assert_allclose(told, expected, atol=6e-4)
    least = re.search(r"Cells below ([\d.]+) are not drawn", root.find(f"{SVG}desc").text)[1]
    assert float(least) == pytest.approx(expected[0], rel=1e-2)


def test_the_picture_refers_to_nothing_outside_itself():
    text = svg_map(soft(5, 7))
    assert re.findall(r"https?://[^\"']*", text) == ["http://www.w3.org/2000/svg"]
    assert not re.search(r"href|url\(|<script|<style|on\w+=", text)
