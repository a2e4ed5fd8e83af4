"""The page in a real browser: what a person sees and does."""

import re

import numpy as np
import pytest

from browser import AXE, CHROMIUM, WHY, WHY_NOT_AXE, Browser
from regard.alignment import Alignment
from regard.alignment.counterfactual import ByPosition, Counterfactual
from regard.alignment.explorer import explorer
from regard.alignment.record import Record
from regard.alignment.svg_map import svg_map

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason=WHY)

TARGET, SOURCE = ["un", "chat", "noir"], ["a", "black", "cat", "</p>", "قطة"]
ROWS = np.array([[0.8, 0.2, 0, 0, 0], [0, 0, 0.6, 0.4, 0], [0, 0.4, 0, 0, 0.6]])


def stack(shift):
    """Two layers of two heads; each turns the rows further, so that every one differs."""
    return [
        [np.roll(ROWS, shift + 2 * layer + head, axis=1) for head in range(2)]
        for layer in range(2)
    ]


@pytest.fixture(scope="module")
def browser():
    one = Browser()
    yield one
    one.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    without = [["un"] * 5, ["chat", "chat", "chien", "rat", "chat"], ["noir"] * 5]
    moved = np.full((3, 5), 0.2)
    moved[1, 2:4] = (0.8, 0.4)
    changed = {
        "uniform": Counterfactual(["un", "chien", "noir"], [0.1, 0.6, 0.2]),
        "ablate": Counterfactual(
            ["un", "chien", "noir"],
            [0.2, 0.8, 0.2],
            how="without each row's largest weight",
            positions=ByPosition(without, moved),
        ),
    }
    options = {"layers": (3, 5), "heads": (0, 7)}
    records = [
        Record(
            stack(0),
            TARGET,
            SOURCE,
            name="one",
            model="before",
            **options,
            counterfactuals=changed,
        ),
        Record(stack(1), TARGET, SOURCE, name="one", model="after", **options),
        Record([[0.25, 0.75], [1.0, 0.0]], ["x", "y"], ["u", "v"], name="two", model="before"),
    ]
    (folder / "two.html").write_text(explorer(records, title="Two models"), "utf-8")
    rng = np.random.default_rng(0)
    long = np.exp(rng.normal(0, 2, (1, 8, 199, 197)))
    long /= long.sum(axis=-1, keepdims=True)
    words = [f"word{place}" for place in range(199)]
    (folder / "long.html").write_text(explorer([Record(long, words, words[:197])]), "utf-8")
    (folder / "single.html").write_text(explorer([Record(ROWS, TARGET, SOURCE)]), "utf-8")
    return folder


@pytest.fixture
def page(browser, files):
    browser.open(files / "two.html")
    ready(browser)
    yield browser
    # No request leaves the page, whatever a test did; nothing went wrong in it either.
    assert browser.requests == [(files / "two.html").as_uri()]
    assert browser.errors == []


def ready(browser):
    browser.wait("!document.getElementById('explorer').hidden")


def text(page, name):
    return page.run(f"document.getElementById('{name}').textContent")


def choose(page, name, value):
    page.run(
        f"(() => {{ const e = document.getElementById('{name}'); e.value = '{value}';"
        "e.dispatchEvent(new Event('change')); })()"
    )


def point(page, row, column, one="one"):
    """Move the mouse to the middle of a cell."""
    box = page.run(
        f"(() => {{ const e = document.querySelector('#map-{one} .cells');"
        "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height]; })()"
    )
    rows, columns = page.run(
        f"['rows', 'columns'].map((axis) => "
        f"document.querySelectorAll('#map-{one} .' + axis + ' .label').length)"
    )
    x, y = box[0] + box[2] * (column + 0.5) / columns, box[1] + box[3] * (row + 0.5) / rows
    page.move(3, 3)  # a pointer that is there already would not move
    page.move(x, y)


def shading(page, side):
    words = f"document.querySelectorAll('#sentences .words')[{int(side == 'source')}]"
    return page.run(
        f"[...{words}.querySelectorAll('.word')].map((word) => word.style.background)"
    )


def test_pointing_at_a_cell_tells_its_weight_and_shades_its_row(page):
    point(page, 1, 3)
    assert text(page, "reading").startswith(
        "“chat” at “</p>”: 0.40. Step 2, “chat”, looks most"
    )
    assert "“cat” 0.60, “</p>” 0.40." in text(page, "reading")
    shades = shading(page, "source")
    assert shades[0] == shades[1] == shades[4] == "rgb(255, 255, 255)"
    assert shades[2] != shades[3] != "rgb(255, 255, 255)"
    on = "[...document.querySelectorAll('#map-one .label.on')].map((e) => e.textContent)"
    assert page.run(on) == ["</p>", "chat"]


def test_pointing_at_a_word_shades_the_other_side(page):
    x, y = page.middle("#sentences .words:nth-of-type(1) .word:nth-child(3)")
    page.move(x, y)
    assert text(page, "reading").startswith("Step 3, “noir”, looks most at “قطة” 0.60")
    x, y = page.middle("#sentences .words:nth-of-type(2) .word:nth-child(2)")
    page.move(x, y)
    assert text(page, "reading").startswith(
        "Source 2, “black”, is looked at most by “noir” 0.40"
    )
    assert shading(page, "target")[1] == "rgb(255, 255, 255)"


def test_what_was_clicked_stays_when_the_pointer_leaves(page):
    point(page, 0, 1)
    page.move(3, 3)
    assert text(page, "reading").startswith("Point at")
    page.click("#sentences .words:nth-of-type(1) .word:nth-child(1)")
    page.move(3, 3)
    assert text(page, "reading").startswith("Step 1, “un”, looks most at “a”")
    choose(page, "head", 1)
    assert text(page, "reading").startswith("Step 1, “un”, looks most at “black”")
    page.click("#next")
    assert text(page, "reading").startswith("Point at")


def test_layer_head_model_and_sentence_are_chosen(page):
    page.run("document.querySelector('#map-one .map').focus()")
    page.press("ArrowDown")
    choose(page, "layer", 1)
    choose(page, "head", 1)
    title = "document.querySelector('#map-one .map-title').textContent"
    assert page.run(title) == "before, layer 5, head 7"
    point(page, 0, 3)
    # Layer 1, head 1 turned the rows by 3.
    assert text(page, "reading").startswith("“un” at “</p>”: 0.80")
    choose(page, "model", 1)
    assert page.run(title) == "after, layer 5, head 7"
    point(page, 0, 4)
    assert text(page, "reading").startswith("“un” at “قطة”: 0.80")
    choose(page, "head", -1)
    point(page, 0, 3)
    assert text(page, "reading").startswith("“un” at “</p>”: 0.40")
    page.click("#next")
    assert page.run(title) == "before, layer 0, head 0", "the other sentence has one head"
    point(page, 0, 1)
    assert text(page, "reading").startswith("“x” at “v”: 0.75")
    page.click("#next")
    assert page.run("document.getElementById('sentence').value") == "0"


def test_the_threshold_decides_which_links_are_drawn(page):
    count = "document.querySelectorAll('#links path').length"
    for least, links in (("0.3", 5), ("0.5", 3), ("0.8", 1), ("0.05", 6)):
        page.run(
            f"(() => {{ const e = document.getElementById('threshold'); e.value = '{least}';"
            "e.dispatchEvent(new Event('input')); })()"
        )
        assert (page.run(count), text(page, "threshold-value")[-7:]) == (
            links,
            f"{links} links",
        )


def test_two_models_are_compared_cell_by_cell(page):
    page.click("#compare")
    titles = "[...document.querySelectorAll('.map-title')].map((e) => e.textContent)"
    assert page.run(titles) == ["before, layer 3, head 0", "after, layer 3, head 0"]
    point(page, 0, 1)
    said = "“un” at “black”: before, layer 3, head 0: 0.20; after, layer 3, head 0: 0.80."
    assert text(page, "reading").startswith(said)
    assert page.run("document.querySelectorAll('#map-two .label.on').length") == 2
    page.click("#difference")
    point(page, 0, 1)
    assert "; difference from after, layer 3, head 0: \u22120.60." in text(page, "reading")
    assert not page.run("document.getElementById('difference-key').hidden")
    page.click("#compare")
    assert page.run("document.getElementById('map-two').hidden")


def test_counterfactuals_are_there_where_the_file_has_them(page):
    names = "[...document.querySelectorAll('#changes button')].map((e) => e.textContent)"
    assert page.run(names) == ["Make uniform", "Ablate"]
    assert page.run("document.getElementById('effects').hidden")
    page.click("#changes button")
    assert page.run("document.querySelector('#changes button').ariaPressed") == "true"
    said = page.run("document.querySelector('#changes [role=status]').textContent")
    assert "1 of 3 steps would write another word" in said
    assert "move by 0.30 on average" in said
    changed = "document.querySelector('#changes ins').textContent"
    assert page.run(changed) == "chien"
    page.click("#changes button")
    assert page.run("document.querySelectorAll('#changes .word').length") == 0
    choose(page, "model", 1)
    assert page.run("document.getElementById('changes').hidden")


def test_a_position_that_is_left_out_says_what_each_step_would_write(page):
    page.click("#changes button[value=ablate]")
    status = "document.querySelector('#changes [role=status]').textContent"
    assert "Without each row's largest weight: 1 of 3 steps" in page.run(status)
    assert "move by 0.40 on average" in page.run(status)
    choose(page, "left-out", 3)
    assert "Without \u201c</p>\u201d, the other weights scaled up: 1 of 3" in page.run(status)
    assert page.run("document.querySelector('#changes ins').textContent") == "rat"
    choose(page, "left-out", 0)
    assert "0 of 3 steps would write another word" in page.run(status)
    box = page.run(
        "(() => { const e = document.querySelector('#effects .cells');"
        "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect();"
        "return [b.left, b.top, b.width, b.height]; })()"
    )
    page.move(3, 3)
    page.move(box[0] + box[2] * 2.5 / 5, box[1] + box[3] * 1.5 / 3)
    said = page.run("document.getElementById('changes').textContent")
    assert "Without \u201ccat\u201d step 2, \u201cchat\u201d, moves by 0.80." in said
    page.click("#changes button[value=ablate]")
    assert page.run("document.getElementById('effects').hidden")


def test_the_map_is_worked_with_the_keyboard_alone(page):
    for _ in range(12):
        page.press("Tab")
        if page.run("document.activeElement.className") == "map":
            break
    assert page.run("document.activeElement.className") == "map"
    page.press("ArrowDown")
    assert text(page, "reading").startswith("“un” at “a”: 0.80")
    for key in ("ArrowDown", "ArrowRight", "ArrowRight"):
        page.press(key)
    assert text(page, "reading").startswith("“chat” at “cat”: 0.60")
    assert text(page, "told") == text(page, "reading"), "a screen reader hears it"
    page.press("End")
    page.press("ArrowRight")
    assert text(page, "reading").startswith("“chat” at “قطة”: 0.00")
    page.press("Escape")
    assert text(page, "reading").startswith("Point at")


def test_the_step_is_a_slider_and_its_value_is_told(page):
    page.run("document.getElementById('step').focus()")
    page.press("ArrowRight")
    assert text(page, "step-value") == "2: chat"
    assert text(page, "told").startswith("Step 2, “chat”, looks most at “cat” 0.60")


def test_the_table_holds_every_weight(page):
    page.click("#table summary")
    page.wait("document.querySelectorAll('#table td').length > 0")
    cells = page.run("[...document.querySelectorAll('#table td')].map((e) => e.textContent)")
    assert cells == [f"{value:.2f}" for value in ROWS.ravel()]
    heads = page.run("[...document.querySelectorAll('#table th')].map((e) => e.textContent)")
    assert heads == ["target \\ source", *SOURCE, *TARGET]
    choose(page, "head", 1)
    first = page.run("document.querySelector('#table td').textContent")
    assert first == f"{np.roll(ROWS, 1, axis=1)[0, 0]:.2f}"


def test_a_small_picture_of_a_head_chooses_it(page):
    page.click(".heads-row:nth-child(2) .head:nth-child(2)")
    title = "document.querySelector('#map-one .map-title').textContent"
    assert page.run(title) == "before, layer 5, head 7"
    pressed = "[...document.querySelectorAll('.head')].map((e) => e.ariaPressed)"
    assert page.run(pressed) == ["false", "false", "false", "true"]


def test_dark_and_light_follow_the_system_until_the_button_decides(browser, files):
    ground = "getComputedStyle(document.body).backgroundColor"
    empty = (
        "[...document.querySelector('#map-one canvas').getContext('2d')"
        ".getImageData(100, 5, 1, 1).data].slice(0, 3)"
    )
    browser.open(files / "single.html", dark=True)
    ready(browser)
    dark = browser.run(ground)
    assert browser.run(empty) == [20, 24, 31], "a weight of nothing is the page's ground"
    assert dark == "rgb(20, 24, 31)"
    browser.click("#theme")
    assert browser.run(ground) == "rgb(255, 255, 255)"
    assert browser.run(empty) == [255, 255, 255]
    browser.open(files / "single.html")
    ready(browser)
    assert browser.run(ground) == "rgb(255, 255, 255)"
    browser.scheme("dark")
    browser.wait(f"{ground} === '{dark}' && {empty}.join() === '20,24,31'")


def test_the_small_pictures_follow_the_theme_and_the_sentence(page):
    pixels = (
        "[...document.querySelectorAll('.head canvas')].map((one) =>"
        " [...one.getContext('2d').getImageData(0, 0, one.width, one.height).data].join())"
    )
    light = page.run(pixels)
    assert len(set(light)) == 4, "every head has its own"
    page.click("#theme")
    dark = page.run(pixels)
    assert all(one != other for one, other in zip(light, dark, strict=True))
    choose(page, "model", 1)
    assert page.run(pixels)[0] == dark[1], "the other model's first head is this one's second"
    page.click("#theme")
    choose(page, "model", 0)
    assert page.run(pixels) == light


def test_one_head_alone_offers_nothing_to_choose_from(browser, files):
    browser.open(files / "single.html")
    ready(browser)
    hidden = "['all-heads', 'changes', 'other', 'map-two'].every((id) => {0})"
    assert browser.run(hidden.format("document.getElementById(id).hidden"))
    assert browser.run("document.getElementById('compare').parentElement.hidden")


@pytest.mark.parametrize("name", ["two", "long"])
@pytest.mark.parametrize("width", [360, 1440])
def test_the_page_fits_its_window_from_360_pixels(browser, files, name, width):
    browser.open(files / f"{name}.html", width=width)
    ready(browser)
    assert browser.run("document.documentElement.scrollWidth") == width
    browser.size(360 if width == 1440 else 1440)
    browser.wait(f"document.documentElement.scrollWidth !== {width}")
    assert browser.run("document.documentElement.scrollWidth === innerWidth")
    assert browser.errors == []


def test_names_and_tokens_of_any_length_fit_360_pixels(browser, tmp_path):
    long = "x" * 300
    one = Record([[0.5, 0.5]], [long], [long, "y"], name=long, model=long)
    other = Record([[1.0, 0.0]], [long], [long, "y"], name=long, model="m" * 200)
    path = tmp_path / "page.html"
    path.write_text(explorer([one, other], title=long), "utf-8")
    browser.open(path, width=360)
    ready(browser)
    browser.click("#compare")
    browser.click("#difference")
    point(browser, 0, 1)
    assert text(browser, "reading").startswith(f"“{long[:39]}…” at “y”: ")
    assert browser.run("document.documentElement.scrollWidth") == 360
    assert browser.errors == []


@pytest.mark.parametrize("width", [360, 1440])
def test_nothing_moves_away_from_under_the_pointer(browser, files, width):
    browser.open(files / "two.html", width=width)
    ready(browser)
    browser.click("#compare")
    browser.move(3, 3)
    tops = (
        "['#map-one .cells', '#map-two .cells', '#sentences', '#links', '#heads'].map((one) =>"
        " document.querySelector(one).getBoundingClientRect().top + scrollY)"
    )
    before = browser.run(tops)
    point(browser, 1, 2)
    assert "looks most at" in text(browser, "reading")
    assert browser.run(tops) == before


def test_pointing_at_a_long_sentence_draws_nothing_again(browser, files):
    browser.open(files / "long.html")
    ready(browser)
    browser.run(
        "window.drawn = 0;"
        "for (const name of ['putImageData', 'drawImage', 'stroke', 'createImageData']) {"
        "  const original = CanvasRenderingContext2D.prototype[name];"
        "  CanvasRenderingContext2D.prototype[name] = function (...given) {"
        "    window.drawn += 1; return original.apply(this, given); }; }"
        "window.made = 0;"
        "new MutationObserver((all) => { window.made += all.reduce("
        "  (sum, one) => sum + (one.target.closest('#maps, #links, #heads')"
        "    ? one.addedNodes.length : 0), 0); })"
        ".observe(document.body, {childList: true, subtree: true});"
    )
    for row, column in ((3, 5), (101, 97), (198, 196)):
        point(browser, row, column)
        said = browser.run("document.getElementById('reading').textContent")
        assert f"“word{row}” at “word{column}”" in said
    assert browser.run("[window.drawn, window.made]") == [0, 0]
    browser.run("document.getElementById('head').dispatchEvent(new Event('change'))")
    assert browser.run("window.drawn") > 0, "the count counts"


def test_every_control_has_a_name(page):
    page.click("#compare")
    nameless = page.run(
        "[...document.querySelectorAll('button, select, input, [tabindex], [role]')]"
        ".filter((e) => !e.ariaLabel && !e.getAttribute('aria-label') && !e.labels?.length"
        " && !e.textContent.trim()).map((e) => e.outerHTML.slice(0, 80))"
    )
    # The status line is empty until there is something to say.
    assert [one for one in nameless if 'role="status"' not in one] == []


@pytest.mark.skipif(AXE is None, reason=WHY_NOT_AXE)
@pytest.mark.parametrize("name", ["two", "long", "single"])
@pytest.mark.parametrize("dark", [False, True])
def test_axe_core_finds_no_violation(browser, files, name, dark):
    for width in (360, 1440):
        browser.open(files / f"{name}.html", dark=dark, width=width)
        ready(browser)
        if name == "two":
            controls = ("#compare", "#difference", "#changes button[value=ablate]")
            for control in (*controls, "#table summary"):
                browser.click(control)
        assert browser.axe() == []


@pytest.mark.skipif(AXE is None, reason=WHY_NOT_AXE)
def test_axe_core_finds_no_violation_in_a_picture(browser, tmp_path):
    svg = svg_map(Alignment(ROWS, TARGET, SOURCE), title="A heat map")
    page = tmp_path / "map.html"
    page.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Map</title>'
        f"<main><h1>Map</h1>{svg}</main></html>",
        "utf-8",
    )
    for dark in (False, True):
        for width in (360, 1440):
            browser.open(page, dark=dark, width=width)
            assert browser.axe() == []


def test_print_is_light_and_whole(browser, files):
    browser.open(files / "two.html", dark=True)
    ready(browser)
    browser.run("dispatchEvent(new Event('beforeprint'))")
    browser.send("Emulation.setEmulatedMedia", media="print")
    shown = browser.run(
        "[getComputedStyle(document.body).backgroundColor,"
        "getComputedStyle(document.querySelector('.controls')).display,"
        "getComputedStyle(document.getElementById('heads')).overflow]"
    )
    assert shown == ["rgb(255, 255, 255)", "none", "visible"]
    printed = browser.send("Page.printToPDF")["data"]
    assert len(printed) > 10_000
    browser.send("Emulation.setEmulatedMedia", media="")
    browser.run("dispatchEvent(new Event('afterprint'))")
    assert not re.search("light", str(browser.run("document.documentElement.dataset.theme")))
