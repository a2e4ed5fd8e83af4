"""The figures in a real browser: mouse, finger and keyboard, against the Python reference."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from browser import CHROMIUM, WHY, Browser
from regard.attention import reference
from regard.learn.figures.figure import FIGURES, figure, style
from regard.learn.figures.given import given
from regard.learn.script import script

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WHY)

FRAME = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Figures</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none';
script-src 'unsafe-inline'; style-src 'unsafe-inline'">
<style>:root {{ --paper: #fff; --ink: #1f2328; --quiet: #59636e; --frame: #8a8f98;
--grid: #d8dde3; --band: #eceff3; --accent: #0b63ad }} {style}</style></head>
<body><main><h1>Figures</h1>{body}</main><script>{script}</script></body></html>"""


@pytest.fixture(scope="module")
def browser():
    one = Browser()
    one.send("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=1)
    yield one
    one.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    body = "".join(figure(name, f"<p>what {name} shows</p>") for name in FIGURES)
    file = tmp_path_factory.mktemp("figures") / "figures.html"
    text = FRAME.format(style=style(), body=body, script=script())
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture
def page(browser, path):
    browser.open(path)
    browser.wait(f"document.querySelectorAll('figure[data-ready]').length === {len(FIGURES)}")
    yield browser
    assert browser.requests == [path.as_uri()]
    assert browser.errors == []


def value(page, name, key):
    """Return what a figure computed, as it was before any rounding."""
    text = page.run(f"document.querySelector('#figure-{name} .figure').dataset.{key}")
    return json.loads(text)


def told(page, name):
    text = f"document.querySelector('#figure-{name} .told')"
    page.wait(f"{text}.textContent === {text}.dataset.text")
    return page.run(f"{text}.textContent")


def choose(page, name, label, option):
    """Choose in a list as a keyboard does: by its value, and the page is told."""
    page.run(
        f"(() => {{ const e = [...document.querySelectorAll('#figure-{name} label')].find("
        f"(l) => l.textContent.startsWith({json.dumps(label)})).querySelector('select');"
        f"e.value = {json.dumps(option)}; e.dispatchEvent(new Event('change')); }})()"
    )


def mark(page, name, label, new):
    """Give the control of a label an id, to point at it; return its selector."""
    page.run(
        f"[...document.querySelectorAll('#figure-{name} label')].find((l) => "
        f"l.textContent.startsWith({json.dumps(label)})).querySelector('input').id = '{new}'"
    )
    return f"#{new}"


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, atol=1e-6)


# One state's weights and context, by the reference.


def expected_state(s, score):
    start = given("state")
    if score == "additive":
        return reference.additive_attention(s, start["keys"], **start["params"])
    return reference.dot_attention(s, start["keys"])


def state_now(page):
    text = page.run(
        "document.querySelector('#figure-state .handle').getAttribute('aria-valuetext')"
    )
    return json.loads(text.removeprefix("s = ").replace("(", "[").replace(")", "]"))


@pytest.mark.parametrize("score", ["dot", "additive"])
def test_the_state_starts_at_the_worked_example(page, score):
    choose(page, "state", "Score", score)
    context, weights = expected_state([0.9, 0.1, 0.2], score)
    close(value(page, "state", "weights"), weights)
    close(value(page, "state", "context"), context)
    assert told(page, "state") == (
        f"With s = (0.90, 0.10, 0.20) the {score} score gives "
        f"h{1 + weights.index(max(weights))} the most weight, {max(weights):.3f}."
    )


@pytest.mark.parametrize("by", ["mouse", "touch"])
def test_the_state_is_dragged_and_the_weights_follow(page, by):
    start = page.middle("#figure-state .handle circle")
    end = page.run(
        "(() => { const b = document.querySelectorAll('#figure-state .key')[2]"
        ".getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; })()"
    )
    page.drag(start, tuple(end), by=by)
    assert state_now(page)[:2] == pytest.approx([0.1, 0.9], abs=0.02)
    weights = value(page, "state", "weights")
    assert weights.index(max(weights)) == 2
    # From the scores that it shows: the state is known to a pixel only.
    close(weights, reference.softmax(value(page, "state", "scores")))


def test_the_state_moves_by_arrow_keys_and_stays_in_its_plane(page):
    page.run("document.querySelector('#figure-state .handle').focus()")
    for key in ("ArrowRight", "ArrowUp", "ArrowUp", "ArrowLeft", "ArrowLeft"):
        page.press(key)
    assert state_now(page) == [0.85, 0.2, 0.2]
    context, weights = expected_state([0.85, 0.2, 0.2], "dot")
    close(value(page, "state", "weights"), weights)
    close(value(page, "state", "context"), context)
    for _ in range(60):
        page.press("ArrowRight")
    assert state_now(page)[0] == 1.5


def test_a_button_brings_the_other_example(page):
    page.tap("#figure-state button:last-of-type")
    assert state_now(page) == [0.2, 0.8, 0.4]
    close(value(page, "state", "weights"), expected_state([0.2, 0.8, 0.4], "dot")[1])


def expected_temperature(d, temperature, scaled):
    start = given("temperature")
    query, keys = start["query"][:d], [key[:d] for key in start["keys"]]
    score = reference.scaled_dot if scaled else reference.dot
    scores = score([query], keys)[0]
    return scores, reference.softmax([e / temperature for e in scores])


def test_temperature_and_scaling_are_the_references(page):
    for scaled in (False, True):
        choose(page, "temperature", "Scores", "scaled" if scaled else "plain")
        scores, weights = expected_temperature(128, 1, scaled)
        close(value(page, "temperature", "scores"), scores)
        close(value(page, "temperature", "weights"), weights)
    heat = mark(page, "temperature", "Temperature", "heat")
    page.run(f"document.querySelector('{heat}').focus()")
    for _ in range(4):
        page.press("ArrowLeft")
    close(value(page, "temperature", "weights"), expected_temperature(128, 10**-0.2, True)[1])
    size = mark(page, "temperature", "d:", "size")
    page.run(f"document.querySelector('{size}').focus()")
    page.press("ArrowLeft")
    scores, weights = expected_temperature(64, 10**-0.2, True)
    close(value(page, "temperature", "weights"), weights)
    spread = -sum(a * math.log(a) for a in weights if a)
    assert f"entropy {spread:.3f}" in told(page, "temperature")


@pytest.mark.parametrize("by", ["mouse", "touch"])
def test_a_slider_is_dragged(page, by):
    heat = mark(page, "temperature", "Temperature", "heat")
    middle = page.middle(heat)
    page.drag(middle, (middle[0] + 40, middle[1]), by=by)
    power = float(page.run(f"document.querySelector('{heat}').value"))
    assert power > 0.1
    close(value(page, "temperature", "weights"), expected_temperature(128, 10**power, False)[1])


def expected_mask(permitted):
    scores = given("mask")["scores"]
    return [
        reference.softmax(row, allowed) for row, allowed in zip(scores, permitted, strict=True)
    ]


def test_every_kind_of_mask_is_the_references(page):
    masks = {
        "none": reference.from_lengths(6, T_dec=6, T_enc=6),
        "padding": reference.from_lengths(4, T_dec=6, T_enc=6),
        "causal": reference.causal(6, 6),
        "window": reference.window(6, 6, left=1, right=1),
    }
    for kind, permitted in masks.items():
        choose(page, "mask", "Mask", kind)
        assert value(page, "mask", "mask") == permitted
        close(value(page, "mask", "weights"), expected_mask(permitted))
        assert told(page, "mask").startswith(f"{sum(map(sum, permitted))} of 36 pairs")


def test_a_row_without_a_key_has_zero_weights_and_is_named(page):
    choose(page, "mask", "Mask", "padding")
    length = mark(page, "mask", "Keys that are no padding", "length")
    page.run(f"document.querySelector('{length}').focus()")
    page.press("Home")
    assert not np.any(value(page, "mask", "weights"))
    assert "have no key left: all weights are zero" in told(page, "mask")


def test_cells_are_pressed_by_mouse_finger_and_keyboard(page):
    cell = "#figure-mask tbody tr:nth-child({}) td:nth-child({}) button"
    permitted = reference.from_lengths(6, T_dec=6, T_enc=6)
    page.click(cell.format(2, 4))  # row 2, key 3: the row's name is a cell too
    permitted[1][2] = False
    close(value(page, "mask", "weights"), expected_mask(permitted))
    page.tap(cell.format(3, 5))
    permitted[2][3] = False
    close(value(page, "mask", "weights"), expected_mask(permitted))
    page.run(f"document.querySelector('{cell.format(1, 2)}').focus()")
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.press(key)
    permitted[1][1] = False
    assert value(page, "mask", "mask") == permitted
    close(value(page, "mask", "weights"), expected_mask(permitted))
    label = page.run(
        f"document.querySelector('{cell.format(2, 3)}').getAttribute('aria-label')"
    )
    assert label == "q2 at k2: forbidden"


@pytest.mark.parametrize("count", [1, 2, 4, 8])
def test_heads_are_the_references(page, count):
    choose(page, "heads", "Heads", str(count))
    states = given("heads")["states"]
    context, weights = reference.multi_head(states, states, heads=count)
    close(value(page, "heads", "weights"), weights)
    close(value(page, "heads", "context"), context)
    assert page.run("document.querySelectorAll('#figure-heads .weights').length") == count


def test_a_query_of_the_heads_is_chosen(page):
    choose(page, "heads", "Query", "1")
    states = given("heads")["states"]
    _, weights = reference.multi_head(states, states, heads=2)
    tokens = given("heads")["tokens"]
    for head, rows in enumerate(weights, 1):
        most = rows[1].index(max(rows[1]))
        said = f"head {head} looks most at “{tokens[most]}” ({rows[1][most]:.2f})"
        assert said in told(page, "heads")


def test_words_of_the_heads_are_pressed_by_mouse_finger_and_keyboard(page):
    tokens = given("heads")["tokens"]
    name = "#figure-heads .grids > :nth-child({}) tbody tr:nth-child({}) th button"
    page.click(name.format(1, 2))
    assert told(page, "heads").startswith(f"From “{tokens[1]}”")
    page.tap(name.format(2, 4))
    assert told(page, "heads").startswith(f"From “{tokens[3]}”")
    page.run(f"document.querySelector('{name.format(2, 6)}').focus()")
    page.press("Enter")
    assert told(page, "heads").startswith(f"From “{tokens[5]}”")
    focused = page.run("document.activeElement.textContent")
    assert focused == tokens[5], "the focus stays"


def test_a_list_is_chosen_from_by_arrow_keys(page):
    page.run("document.querySelector('#figure-heads select').focus()")
    page.press("ArrowDown")
    assert page.run("document.querySelectorAll('#figure-heads .weights').length") == 4


@pytest.mark.parametrize("by", ["mouse", "touch", "keyboard"])
def test_sizes_that_are_alike_hide_a_mistake_and_others_show_it(page, by):
    choose(page, "shapes", "Mistake", "1")  # W_a without .T
    buttons = "#figure-shapes .controls:nth-of-type(2) button:nth-of-type({})"

    def press(place):
        selector = buttons.format(place)
        if by == "keyboard":
            page.run(f"document.querySelector('{selector}').focus()")
            page.press("Enter")
        else:
            (page.click if by == "mouse" else page.tap)(selector)

    assert "stops" in told(page, "shapes")
    press(1)
    assert "every shape looks right" in told(page, "shapes")
    press(2)
    assert "stops" in told(page, "shapes")


def test_a_mark_is_tapped(page):
    points = curves(given("length")["result"])
    page.run("[...document.querySelectorAll('#figure-length .mark-0')][1].id = 'two'")
    page.tap("#two")
    assert told(page, "length") == (
        f"no attention, length 10: token accuracy {points[0][1][1]:.3f}."
    )


def test_sizes_are_typed_and_the_line_that_fails_is_named(page):
    choose(page, "shapes", "Score", "dot")
    assert told(page, "shapes") == "`query @ key.mT` stops: these shapes do not fit together."
    size = mark(page, "shapes", "d_h", "size")
    page.run(
        f"document.querySelector('{size}').focus(); document.querySelector('{size}').select()"
    )
    page.send("Input.insertText", text="11")
    assert told(page, "shapes") == "Every shape is as it should be."
    choose(page, "shapes", "Mistake", "1")
    assert "rows do not sum to 1" in told(page, "shapes")
    page.run(f"document.querySelector('{size}').select()")
    page.send("Input.insertText", text="0")
    assert told(page, "shapes") == "d_h must be a whole number from 1 to 4096."
    assert page.run(f"document.querySelector('{size}').getAttribute('aria-invalid')") == "true"


def test_a_broadcast_is_told_from_what_stops(page):
    choose(page, "shapes", "Mistake", "2")
    assert "stops" in told(page, "shapes")
    for name, label in (("one", "T_dec"),):
        size = mark(page, "shapes", label, name)
        page.run(f"document.querySelector('{size}').select()")
        page.send("Input.insertText", text="1")
    assert "was broadcast or turned" in told(page, "shapes")


def curves(result):
    copy = result["copy"]
    return [
        [
            [length, float(np.mean(model["token_accuracy"][str(length)]))]
            for length in copy["lengths"]
        ]
        for model in copy["models"].values()
    ]


def test_the_curves_are_the_means_of_the_run(page):
    found = value(page, "length", "curves")
    close([each["points"] for each in found], curves(given("length")["result"]))


def test_marks_say_their_number_to_pointer_and_keyboard(page):
    points = curves(given("length")["result"])
    page.run("[...document.querySelectorAll('#figure-length .mark-1')][5].id = 'one'")
    page.click("#one")
    assert told(page, "length") == (
        f"Bahdanau, length 120: token accuracy {points[1][5][1]:.3f}."
    )
    page.run("document.querySelectorAll('#figure-length .mark-0')[2].focus()")
    assert told(page, "length") == (
        f"no attention, length 20: token accuracy {points[0][2][1]:.3f}."
    )


def test_the_readers_own_run_is_shown_and_a_wrong_file_is_told(page, tmp_path):
    own = {
        "copy": {
            "lengths": [3, 7],
            "trained_lengths": [1, 7],
            "chance": 0.1,
            "models": {"dot": {"token_accuracy": {"3": [0.5, 0.7], "7": [0.25]}}},
        }
    }
    for name, content, answer in (
        ("demo.json", json.dumps(own), "demo.json: Luong dot 0.600 at length 3, 0.250 at 7."),
        ("bad.json", "[1]", "bad.json cannot be shown: it has no results of the copy task"),
        ("torn.json", "{", "torn.json cannot be shown: "),
    ):
        (tmp_path / name).write_text(content)
        node = page.send("DOM.getDocument")["root"]["nodeId"]
        found = page.send(
            "DOM.querySelector", nodeId=node, selector="#figure-length input[type=file]"
        )
        page.send("DOM.setFileInputFiles", files=[str(tmp_path / name)], nodeId=found["nodeId"])
        page.wait(
            "document.querySelector('#figure-length .told').textContent"
            f".startsWith({json.dumps(answer)})"
        )
    assert value(page, "length", "curves") == [
        {"name": "Luong dot", "points": [[3, 0.6], [7, 0.25]]}
    ]


def game(weights):
    start = given("permutation")
    logit = sum(a * s for a, s in zip(weights, start["offers"], strict=True)) + start["bias"]
    return 1 / (1 + math.exp(-logit))


def test_the_game_keeps_count_of_how_far_weights_moved_with_the_same_answer(page):
    start = given("permutation")
    close(value(page, "permutation", "answer"), game(start["weights"]))
    buttons = "#figure-permutation .controls:nth-of-type(2) button:nth-of-type({})"
    page.click(buttons.format(2))
    close(value(page, "permutation", "weights"), [1 / 7] * 7)
    close(value(page, "permutation", "answer"), game([1 / 7] * 7))
    assert value(page, "permutation", "best") == 0, "the answer has moved"
    page.tap(buttons.format(3))
    far = value(page, "permutation", "weights")
    close(value(page, "permutation", "answer"), game(far))
    assert abs(game(far) - game(start["weights"])) <= start["least"] + 1e-6
    assert np.count_nonzero(far) <= 2
    best = value(page, "permutation", "best")
    assert best == value(page, "permutation", "far") > 0.3
    page.click(buttons.format(4))
    close(value(page, "permutation", "weights"), start["weights"])
    assert value(page, "permutation", "best") == best
    page.click(buttons.format(1))
    assert sorted(value(page, "permutation", "weights")) == pytest.approx(
        sorted(start["weights"])
    )


def test_a_token_of_the_game_is_moved_by_keys(page):
    start = given("permutation")["weights"]
    dull = mark(page, "permutation", "dull", "dull")
    page.run(f"document.querySelector('{dull}').focus()")
    page.press("ArrowLeft")
    found = value(page, "permutation", "weights")
    close(found[1], 0.34)
    close(found[0], start[0] / (1 - start[1]) * 0.66)
    close(sum(found), 1)


def test_every_figure_has_a_name_and_tells_what_it_shows(page):
    names = page.run(
        "[...document.querySelectorAll('figure[data-figure]')].map((f) => "
        "document.getElementById(f.getAttribute('aria-labelledby')).textContent)"
    )
    assert names == [title for title, _ in FIGURES.values()]
    assert page.run("document.querySelectorAll('figure .told[role=status]').length") == len(
        FIGURES
    )
    unnamed = page.run(
        "[...document.querySelectorAll('figure input, figure select')].filter("
        "(e) => !e.labels.length || !e.labels[0].textContent.trim()).length"
    )
    assert unnamed == 0


@pytest.mark.parametrize("width", [360, 1440])
def test_nothing_is_wider_than_the_window(page, width):
    page.size(width)
    page.settle()
    assert page.run("document.documentElement.scrollWidth") <= width


def test_without_scripts_the_text_stands_in_the_figures_place(browser, path, tmp_path):
    file = tmp_path / "plain.html"
    text = Path(path).read_text(encoding="utf-8").replace("script-src 'unsafe-inline';", "")
    file.write_text(text, encoding="utf-8")
    browser.open(file)
    for name in FIGURES:
        shown = browser.run(f"document.querySelector('#figure-{name} .figure').innerText")
        assert shown.strip() == f"what {name} shows"
    browser.errors.clear()
