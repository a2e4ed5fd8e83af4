import itertools
import re
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from regard.alignment import Alignment
from regard.errors import BackendError, InputError

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from regard.alignment.heatmap import heatmap, save, svg


def soft(steps, states, target=None, source=None):
    line = (np.arange(steps) + 0.5) * states / steps
    weights = np.exp(-((np.arange(states) + 0.5 - line[:, None]) ** 2))
    return Alignment(
        weights / weights.sum(axis=1, keepdims=True),
        target or [f"t{place}" for place in range(steps)],
        source or [f"s{place}" for place in range(states)],
    )


def boxes(figure):
    """Draw, and return the box of every visible text with its words."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    texts = []
    for axes in figure.findobj(lambda artist: hasattr(artist, "get_xticklabels")):
        texts += [axes.xaxis.label, axes.yaxis.label, axes._left_title]
        texts += [*axes.get_xticklabels(), *axes.get_yticklabels()]
    return [
        (text.get_text(), text.get_window_extent(renderer))
        for text in texts
        if text.get_text() and text.get_visible()
    ]


def test_the_target_runs_down_and_the_source_across():
    ax = heatmap(soft(5, 7))
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "t0",
        "t1",
        "t2",
        "t3",
        "t4",
    ]
    assert [label.get_text() for label in ax.get_xticklabels()] == [f"s{n}" for n in range(7)]
    assert ax.images[0].get_array().shape == (5, 7)
    bottom, top = ax.get_ylim()
    assert bottom > top, "the first step must stand at the top"


def test_the_scale_runs_from_zero_to_one_whatever_the_weights():
    even = Alignment(np.full((3, 5), 0.2), list("abc"), list("vwxyz"))
    assert heatmap(even).images[0].get_clim() == (0, 1)


def test_lightness_falls_from_zero_to_one_so_that_the_map_reads_in_grey():
    ax = heatmap(soft(3, 5))
    red, green, blue, _ = ax.images[0].cmap(np.linspace(0, 1, 53)).T
    grey = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    assert (np.diff(grey) < 0).all()
    assert grey[0] > 0.9
    assert grey[-1] < 0.25


@pytest.mark.parametrize(
    ("steps", "states"), [(1, 1), (5, 7), (2, 61), (61, 2), (41, 37), (199, 193)]
)
def test_no_label_is_clipped_or_lies_on_another(steps, states):
    figure = heatmap(soft(steps, states), title="a title of some length").figure
    found = boxes(figure)
    width, height = figure.canvas.get_width_height()
    for words, box in found:
        assert box.x0 >= -1, words
        assert box.y0 >= -1, words
        assert box.x1 <= width + 1, words
        assert box.y1 <= height + 1, words
    for (one, first), (other, second) in itertools.combinations(found, 2):
        # One pixel of overlap is the blank border of two boxes that touch.
        wide = min(first.x1, second.x1) - max(first.x0, second.x0)
        high = min(first.y1, second.y1) - max(first.y0, second.y0)
        assert wide <= 1 or high <= 1, (one, other)


def test_five_tokens_are_all_named_and_two_hundred_are_thinned_and_say_so():
    few, many = heatmap(soft(5, 5)), heatmap(soft(199, 199))
    assert few.get_xlabel() == "source"
    named = [label.get_text() for label in many.get_xticklabels()]
    every = int(re.fullmatch(r"source \(one in (\d+) named\)", many.get_xlabel())[1])
    assert named == [f"s{place}" for place in range(0, 199, every)]
    assert len(named) > 20


def test_a_long_token_ends_in_an_ellipsis_and_odd_characters_are_shown():
    ax = heatmap(soft(2, 2, target=["x" * 99, "a b"], source=["\x00", "$y$"]))
    assert [label.get_text() for label in ax.get_yticklabels()] == ["x" * 15 + "…", "a␣b"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["�", r"\$y\$"]
    assert ">$y$</text>" in svg(ax.figure), "a pair of dollars is no formula"


def test_right_to_left_and_far_eastern_tokens_are_drawn_without_a_warning(tmp_path):
    ax = heatmap(soft(3, 3, target=["中文", "的", "言語"], source=["שלום", "مرحبا", "a"]))
    _, vector = save(ax.figure, tmp_path / "words")
    assert "中文" in vector.read_text(encoding="utf-8")


def test_an_axes_that_is_given_is_drawn_on_and_returned():
    figure = Figure(figsize=(6, 3))
    left, right = figure.subplots(1, 2)
    assert heatmap(soft(5, 7), right, colorbar=False) is right
    assert not left.images
    assert len(figure.axes) == 2


def test_a_font_size_of_nothing_is_refused():
    with pytest.raises(InputError, match="`font_size` is no size"):
        heatmap(soft(3, 5), font_size=0)


def test_saving_twice_gives_the_same_bytes(tmp_path):
    for place in ("first", "second"):
        (tmp_path / place).mkdir()
        save(heatmap(soft(5, 7), title="same").figure, tmp_path / place / "picture")
    for suffix in (".png", ".svg"):
        one, two = (
            (tmp_path / p / f"picture{suffix}").read_bytes() for p in ("first", "second")
        )
        assert one == two


def test_saving_keeps_a_name_with_a_dot_and_returns_both_paths(tmp_path):
    paths = save(heatmap(soft(3, 5)).figure, tmp_path / "step.1000")
    assert [path.name for path in paths] == ["step.1000.png", "step.1000.svg"]
    assert paths[0].read_bytes().startswith(b"\x89PNG")


def test_the_svg_is_well_formed_and_refers_to_nothing_outside_itself():
    text = svg(heatmap(soft(5, 7), title="<script>&").figure)
    root = ET.fromstring(text)
    assert "DOCTYPE" not in text
    assert "<dc:date>" not in text
    for element in root.iter():
        for name, value in element.attrib.items():
            if name.endswith(("href", "src")):
                assert value.startswith(("#", "data:")), (name, value)
            assert not re.search(r"url\((?!#)", value), value
    # A namespace is a name; nothing fetches it.
    rest = re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)
    assert "://" not in rest


def test_a_cell_is_one_pixel_of_the_embedded_picture():
    text = svg(heatmap(soft(5, 7)).figure)
    assert re.search(r'<image [^>]*width="7" height="5"', text)


def test_a_directory_that_is_not_there_is_one_clear_error(tmp_path):
    with pytest.raises(InputError, match="the picture cannot be written"):
        save(heatmap(soft(3, 5)).figure, tmp_path / "nowhere" / "picture")


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "regard.alignment.heatmap")
    with pytest.raises(BackendError, match=r"pip install 'regard\[plot\]'"):
        __import__("regard.alignment.heatmap")
