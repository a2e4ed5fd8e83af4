import html
import re
import subprocess
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest

from browser import AXE, CHROMIUM, WHY, WHY_NOT_AXE, Browser
from regard.demo.copy_results import CopyResults
from regard.demo.page import inline_svg
from regard.demo.report import report_html, write_report
from regard.errors import InputError

VOID = {"meta", "br"}

TINY_SVG = (
    '<?xml version="1.0"?><svg width="30pt" height="15pt" viewBox="0 0 30 15">'
    '<defs><path id="m1" d="M 0 0"/><clipPath id="p1"/></defs>'
    '<g id="g1" clip-path="url(#p1)"><use xlink:href="#m1" style="fill: #1f2328"/></g></svg>'
)


class Reader(HTMLParser):
    """Collects tags and text, and holds every tag to its end."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.words, self.open = [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="session")
def pictures():
    """SVG of every figure, drawn once for the same results."""
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    from regard.alignment.heatmap import svg
    from regard.demo.plots import demo_figures

    kept = {}

    def draw(found):
        key = repr(found)
        if key not in kept:
            kept[key] = {name: svg(figure) for name, figure in demo_figures(found).items()}
        return kept[key]

    return draw


@pytest.fixture
def whole(results, pictures):
    return report_html(results(), pictures(results()))


def test_the_page_is_well_formed(whole):
    assert whole.startswith("<!doctype html>\n")
    Reader(whole)


@pytest.mark.skipif(CHROMIUM is None, reason=WHY)
@pytest.mark.skipif(AXE is None, reason=WHY_NOT_AXE)
def test_the_page_has_no_serious_fault_by_axe_core(whole, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(whole, encoding="utf-8")
    browser = Browser()
    try:
        browser.hold(path)
    finally:
        browser.close()


def test_nothing_on_the_page_can_make_a_request(whole):
    reader = Reader(whole)
    for tag, attributes in reader.tags:
        assert tag not in {"script", "link", "iframe", "object", "embed", "base"}
        for name, value in attributes.items():
            assert not name.startswith("on"), name
            if name.endswith(("href", "src", "srcset", "action", "data")):
                assert value.startswith(("#", "data:image/png;base64,")), (
                    tag,
                    name,
                    value[:40],
                )
    assert not re.search(r"url\((?!#)", whole)
    assert "@import" not in whole
    assert "://" not in whole
    assert "DTD" not in whole
    (policy,) = (a["content"] for t, a in reader.tags if a.get("http-equiv"))
    assert policy.startswith("default-src 'none';")


def test_ids_are_unique_and_every_reference_is_to_one_of_them(whole):
    ids = re.findall(r'\bid="([^"]*)"', whole)
    assert len(ids) > 100
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:href="|url\()#([^")]*)', whole)
    assert used
    assert set(used) <= set(ids)


def test_the_finding_and_every_mean_are_the_computed_ones(results, whole):
    text = Reader(whole).text.replace("\xa0", " ")
    copy = CopyResults.read(results()["copy"])
    assert copy.finding() in text
    for model, length in (("none", 5), ("bahdanau", 80), ("general", 160)):
        for measure in ("token_accuracy", "exact_match"):
            share = copy.cell(model, length, measure).mean
            if 0.001 < share < 0.999:
                assert f"{100 * share:.1f}" in text, (model, length, measure)


def test_other_figures_give_another_finding(results, pictures):
    found = results()
    found["copy"]["models"]["none"]["token_accuracy"]["80"] = [0.31, 0.33]
    assert "without attention gets 32.0" in Reader(report_html(found, {})).text


def test_tables_name_their_rows_columns_and_extrapolation(whole):
    heads = [attributes for tag, attributes in Reader(whole).tags if tag == "th"]
    assert all(head.get("scope") in {"row", "col", "colgroup"} for head in heads)
    groups = [(h["colspan"], h.get("class")) for h in heads if h["scope"] == "colgroup"]
    assert groups == [("5", None), ("2", "beyond")] * 2
    assert "not trained on: extrapolation" in whole
    assert "best attention minus none" in whole


def test_every_picture_has_words_for_those_who_do_not_see_it(whole):
    tags = Reader(whole).tags
    drawn = [attributes for tag, attributes in tags if tag == "svg"]
    assert len(drawn) == 6
    assert all(svg["role"] == "img" and len(svg["aria-label"]) > 20 for svg in drawn)
    assert ("html", {"lang": "en"}) in tags
    levels = [tag for tag, _ in tags if tag in {"h1", "h2", "h3"}]
    assert levels[0] == "h1"
    assert levels.count("h1") == 1
    scrolled = [a for tag, a in tags if a.get("class") == "scroll"]
    assert scrolled
    assert all(a["tabindex"] == "0" and a["aria-label"] for a in scrolled)


def test_the_report_says_how_it_was_made_and_what_it_does_not_show(whole):
    text = Reader(whole).text
    for wanted in (
        "regard demo --seed 0",
        "2.13.0",
        "5 min 1 s",
        "0, 1, 2",
        "1,000 a model",
        "12,000",
        "against the nearest of all listed pronunciations",
        "By themselves they do not explain",
        "One architecture was tried",
        "TH AO R OW",
        "not among those listed",
    ):
        assert wanted in text, wanted


def test_colours_follow_the_page_into_dark_mode(whole):
    dark = re.search(r"prefers-color-scheme: dark\) \{(.*?)\n\}", whole, flags=re.DOTALL)[1]
    known = set(re.findall(r"--(c[0-9a-f]{6}):", dark))
    drawn = whole[whole.index("<main>") :]
    used = set(re.findall(r"var\(--(c[0-9a-f]{6}), ", drawn))
    assert used
    assert used <= known
    assert not re.search(r"(?:fill|stroke): #", drawn), "a colour that stays light"


def test_all_text_is_escaped(results):
    evil = '<img src="x" onerror="y">&'
    found = results()
    found["made_by"] = dict.fromkeys(found["made_by"], evil) | {"wall_seconds": 1}
    found["copy"]["models"][evil] = found["copy"]["models"].pop("dot")
    found["alignments"]["copy"] = {evil: found["alignments"]["copy"]["dot"]}
    found["g2p"]["attention"] = evil
    word = found["g2p"]["examples"][0]
    word["source"], word["target"], word["references"] = [evil], [evil], [[evil]]
    text = report_html(found, {})
    assert "<img" not in text
    assert text.count(html.escape(evil)) >= 8
    Reader(text)


@pytest.mark.parametrize(
    "wanted",
    [
        {"models": ()},
        {"models": ("none",)},
        {"models": ("dot",)},
        {"seeds": (0,)},
        {"lengths": (5,)},
        {"lengths": (120, 160)},
        {"lengths": ()},
    ],
)
def test_partial_copy_results_make_a_whole_page(results, pictures, wanted):
    found = results(**wanted)
    reader = Reader(report_html(found, pictures(found)))
    assert "nan" not in reader.text.lower().split()
    assert "How this was made" in reader.text


@pytest.mark.parametrize("part", ["copy", "g2p", "alignments", "made_by"])
def test_a_missing_part_is_said_to_be_missing(results, part):
    found = results()
    del found[part]
    text = Reader(report_html(found, {})).text
    said = {
        "copy": "The copy task was not part of this run.",
        "g2p": "Letters to sounds was not part of this run.",
        "alignments": "No alignment was recorded in this run.",
        "made_by": "How this was made",
    }
    assert said[part] in text


def test_nothing_at_all_still_makes_a_page():
    assert "was not part of this run" in Reader(report_html({}, {})).text


def test_a_word_without_output_has_no_picture_and_says_nothing_was_predicted(results):
    found = results()
    found["g2p"]["examples"] = [
        {"source": ["A"], "target": [], "weights": [], "references": []}
    ]
    text = Reader(report_html(found, {})).text
    assert "predicted nothing listed none" in text


def test_a_copy_model_that_wrote_nothing_is_said_to(results):
    found = results()
    found["alignments"]["copy"] = {"dot": {"weights": [], "target": []}, "none": None}
    assert "Luong dot: wrote nothing." in Reader(report_html(found, {})).text


def test_marks_in_angle_brackets_do_not_count_against_a_word(results):
    found = results()
    word = found["g2p"]["examples"][0]
    word["target"].append("</s>")
    found["g2p"]["examples"] = [word]
    assert "verdict as listed" in Reader(report_html(found, {})).text


def test_a_figure_of_an_unknown_name_is_refused(results):
    with pytest.raises(InputError, match="'word_5' belongs nowhere"):
        report_html(results(), {"word_5": TINY_SVG})


@pytest.mark.parametrize(
    "inner",
    [
        '<image href="http://host/x.png"/>',
        '<use xlink:href="file.svg#a"/>',
        '<g style="fill: url(other.svg#p)"/>',
        "<style>@import 'x.css';</style>",
        "<script>1</script>",
        '<g onload="x()"/>',
    ],
)
def test_a_picture_that_reaches_outside_is_refused(inner):
    with pytest.raises(InputError, match="cannot be shown"):
        inline_svg(TINY_SVG.replace("</svg>", inner + "</svg>"), name="a", label="b")


@pytest.mark.parametrize("text", ["", "<p>no picture</p>", "<svg></svg>"])
def test_what_is_no_picture_is_refused(text):
    with pytest.raises(InputError, match="cannot be shown"):
        inline_svg(text, name="a", label="b")


def test_an_inline_picture_keeps_its_references_under_new_ids():
    drawn = inline_svg(TINY_SVG, name="fig", label='a "quoted" label')
    root = ET.fromstring(drawn.replace("xlink:href", "href"))
    assert root.get("aria-label") == 'a "quoted" label'
    assert root.get("viewBox") == "0 0 30 15"
    assert {e.get("id") for e in root.iter()} - {None} == {"fig-m1", "fig-p1", "fig-g1"}
    assert root.find("g").get("clip-path") == "url(#fig-p1)"
    assert root.find("g/use").get("href") == "#fig-m1"
    assert root.find("g/use").get("style") == "fill: var(--c1f2328, #1f2328)"


def test_writing_replaces_an_old_file_and_leaves_nothing_else(tmp_path, results):
    path = tmp_path / "report.html"
    path.write_text("old")
    assert write_report(results(), {}, path) == path
    assert path.read_text(encoding="utf-8") == report_html(results(), {})
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_directory_that_is_not_there_is_one_clear_error(tmp_path, results):
    with pytest.raises(InputError, match="the report cannot be written"):
        write_report(results(), {}, tmp_path / "nowhere" / "report.html")


def test_the_report_needs_no_plotting_library_and_no_torch():
    import sys

    code = (
        "import sys, regard.demo.report, regard.demo.table\n"
        "assert not {'torch', 'matplotlib'} & set(sys.modules), 'imported too much'"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium to lay the page out")
def test_the_page_never_scrolls_sideways(tmp_path, whole):
    # Frames of `srcdoc` share their parent's origin, so that it may measure them.
    frames = "".join(
        f'<iframe srcdoc="{html.escape(whole)}" width="{width}"></iframe>'
        for width in (360, 1400)
    )
    script = (
        "onload = () => { document.title = [...document.querySelectorAll('iframe')]"
        ".map(f => f.contentDocument.documentElement)"
        ".map(e => e.scrollWidth + '/' + e.clientWidth).join(' ') }"
    )
    page = tmp_path / "frames.html"
    page.write_text(f"<title></title><script>{script}</script>{frames}", encoding="utf-8")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    command += ["--disable-background-networking", "--disable-sync", "--no-first-run"]
    command += [f"--user-data-dir={tmp_path / 'profile'}", page.as_uri()]
    shown = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=True
    ).stdout
    measured = re.search(r"<title>(.*?)</title>", shown)[1].split()
    for width, frame in zip((360, 1400), measured, strict=True):
        needed, given = (int(number) for number in frame.split("/"))
        assert needed == given
        assert width - 20 <= given <= width, "a frame less its scroll bar"
