"""The forms that programs read: each is valid by its own standard and says the same."""

import json
from dataclasses import fields, replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import regard.check
from regard.check import finding as records
from regard.check.render import render

SCHEMA = Path(regard.check.__file__).with_name("schema.json")
SARIF = Path(__file__).with_name("sarif-2.1.0.schema.json")


@pytest.fixture(scope="session")
def schema():
    """A validator of our own JSON."""
    jsonschema = pytest.importorskip("jsonschema")
    loaded = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(loaded)
    return jsonschema.Draft202012Validator(loaded)


def test_the_json_of_one_target_is_its_report(decoder):
    data = json.loads(render("json", [decoder]))
    assert data == json.loads(json.dumps(decoder.as_json()))
    assert [found["code"] for found in data["findings"]] == ["RG301", "RG205"]
    assert data["checked"][0] == "runs"


def test_the_json_of_several_targets_keeps_their_order(every):
    data = json.loads(render("json", every))
    assert [report["target"] for report in data["results"]] == [r.target for r in every]


def test_the_json_is_what_the_schema_says(every, schema):
    schema.validate(json.loads(render("json", every)))
    for report in every:
        schema.validate(json.loads(render("json", [report])))
    schema.validate({"results": []})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda data: data.pop("checked"),
        lambda data: data.update(verdict="fine"),
        lambda data: data["findings"][0].update(level="fatal"),
        lambda data: data["findings"][0].update(code="RG1"),
        lambda data: data["findings"][0]["location"].update(line=0),
        lambda data: data["findings"][0]["fix"].update(status="sure"),
        lambda data: data["findings"][0]["evidence"].pop("relation"),
    ],
)
def test_the_schema_refuses_what_is_no_report(decoder, schema, spoil):
    data = json.loads(render("json", [decoder]))
    spoil(data)
    assert not schema.is_valid(data)


@pytest.mark.parametrize(
    "record", ["Location", "Tensor", "Step", "Measurement", "Evidence", "Edit", "Proof", "Fix"]
)
def test_the_schema_describes_every_field_of_a_record(record):
    described = json.loads(SCHEMA.read_text(encoding="utf-8"))["$defs"][record.lower()]
    assert set(described["properties"]) == {f.name for f in fields(getattr(records, record))}


def test_json_has_no_half_characters(decoder):
    odd = replace(decoder, target="\udce9.py:attend", path="\udce9.py")
    text = render("json", [odd])
    text.encode("utf-8")
    assert json.loads(text)["target"] == "\udce9.py:attend"


def test_sarif_is_valid_by_the_standards_schema(every):
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft4Validator(json.loads(SARIF.read_text(encoding="utf-8")))
    log = json.loads(render("sarif", every))
    validator.validate(log)
    log["runs"][0]["results"][0]["message"] = "text"
    assert not validator.is_valid(log)


def run_of(reports):
    return json.loads(render("sarif", reports))["runs"][0]


def test_sarif_holds_the_finding_its_way_and_its_fix(decoder):
    run = run_of([decoder])
    axis, row = run["results"]
    assert [axis["ruleId"], axis["level"], row["ruleId"], row["level"]] == [
        "RG301",
        "error",
        "RG205",
        "warning",
    ]
    assert run["tool"]["driver"]["rules"][axis["ruleIndex"]]["id"] == "RG301"
    flow = axis["codeFlows"][0]["threadFlows"][0]["locations"]
    told = [step["location"]["message"]["text"] for step in flow]
    assert told[:2] == ["scores (batch, T_dec, T_enc)"] * 2
    assert told[2].startswith("`weights` sums to 1")
    (change,) = axis["fixes"][0]["artifactChanges"]
    assert change["replacements"] == [
        {
            "deletedRegion": {
                "startLine": 10,
                "startColumn": 37,
                "endLine": 10,
                "endColumn": 42,
            },
            "insertedContent": {"text": "dim=-1"},
        }
    ]
    assert "fixes" not in row  # a sketch is never applied
    assert run["columnKind"] == "unicodeCodePoints"


def test_sarif_offers_no_fix_that_hangs_on_a_condition(mixer):
    assert all("fixes" not in result for result in run_of([mixer])["results"])


def test_a_sarif_fingerprint_outlives_a_move_to_another_line(decoder):
    axis = decoder.findings[0]
    moved = replace(axis, location=replace(axis.location, line=40, end_line=40))
    before, after = (
        run_of([replace(decoder, findings=(found,))])["results"][0] for found in (axis, moved)
    )
    assert before["partialFingerprints"] == after["partialFingerprints"]
    assert before["locations"] != after["locations"]


def test_a_suppressed_finding_stays_in_sarif_with_its_reason(mixer):
    crash, note = run_of([mixer])["results"]
    assert "suppressions" not in crash
    assert note["suppressions"] == [
        {"kind": "inSource", "justification": "the score of the old model, on purpose"}
    ]


def test_sarif_says_that_a_target_could_not_be_checked(unloadable, clean):
    run = run_of([unloadable])
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is False
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert told["descriptor"] == {"id": "RG901"}
    assert run_of([clean])["invocations"][0]["executionSuccessful"] is True


def test_sarif_paths_are_uris(mixer):
    physical = run_of([mixer])["results"][0]["locations"][0]["physicalLocation"]
    assert physical["artifactLocation"] == {"uri": "src/mix%20er.py"}


def test_github_has_one_command_a_line_and_escapes_what_would_end_it(every):
    lines = render("github", every).splitlines()
    assert [line.split(" ")[0] for line in lines] == [
        "::error",
        "::warning",
        "::error",
        "::error",
        "::notice",
    ]
    assert "file=decoder.py,line=10,endLine=10,col=15,endColumn=43,title=RG301 " in lines[0]
    assert "%0A" in lines[0]


def test_github_escapes_percent_signs_colons_and_commas(mixer):
    _, note = mixer.findings
    awkward = replace(note, suppressed="", location=replace(note.location, path="a,b:c%.py"))
    text = render("github", [replace(mixer, findings=(awkward,))])
    assert text.startswith("::notice file=a%2Cb%3Ac%25.py,line=2,")
    assert "100 %25 <dot>,%0Anot" in text
    assert text.count("\n") == 1


def test_junit_counts_what_it_holds(every):
    root = ET.fromstring(render("junit", every))
    counted = {"tests": "testcase", "failures": "failure", "errors": "error"}
    for element in (root, *root.findall("testsuite")):
        for name, tag in {**counted, "skipped": "skipped"}.items():
            assert int(element.get(name)) == len(element.findall(f".//{tag}")), name
    assert (root.get("failures"), root.get("errors"), root.get("skipped")) == ("2", "1", "1")


@pytest.mark.parametrize(("fail_on", "failures"), [("error", 1), ("warning", 2), ("note", 2)])
def test_junit_fails_from_the_chosen_level_on(decoder, fail_on, failures):
    root = ET.fromstring(render("junit", [decoder], fail_on=fail_on))
    assert len(root.findall(".//failure")) == failures


class Page(HTMLParser):
    """Collects what a page holds, and checks that its elements are closed in order."""

    VOID = ("meta", "br", "link", "img")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.attributes, self.script = [], [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.script += data


@pytest.fixture
def hostile(decoder):
    """Texts that would leave their place in a page if they could."""
    bad = "</script><script>alert(1)</script><img src=x onerror=alert(1)>'\""
    axis = replace(decoder.findings[0], message=bad, hidden=bad, also=bad)
    return replace(decoder, findings=(axis,), target=bad, source=bad, test=bad, path=bad)


@pytest.mark.parametrize("form", ["html", "notebook"])
def test_a_page_is_closed_and_asks_for_nothing(form, every, hostile):
    text = render(form, [*every, hostile])
    page = Page(text)
    assert page.tags.count("script") == (form == "html")
    assert not {"img", "link", "iframe", "object"}.intersection(page.tags)
    assert not [name for name, _ in page.attributes if name in ("src", "srcset")]
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert all(value.startswith("#") for name, value in page.attributes if name == "href")
    assert "url(" not in text
    assert "@import" not in text


def test_the_page_is_also_the_data(every, hostile):
    assert json.loads(Page(render("html", [hostile])).script) == json.loads(
        render("json", [hostile])
    )
    assert json.loads(Page(render("html", every)).script) == json.loads(render("json", every))


def test_the_page_puts_the_worst_finding_first(decoder):
    axis, row = decoder.findings
    text = render("html", [replace(decoder, findings=(row, axis))])
    assert text.index("error[RG301]") < text.index("warning[RG205]")


def test_every_figure_has_a_title_a_sentence_and_its_numbers_as_a_table(decoder):
    figures = render("html", [decoder]).split('<figure tabindex="0">')[1:]
    assert len(figures) == 3  # a path for each finding, and the weights
    for figure in figures:
        body = figure.split("</figure>")[0]
        assert "<figcaption><strong>" in body
        assert body.count("<svg") >= 1
        assert "<table>" in body
        assert body.count("<svg") == body.count('role="img"')


def test_both_grids_have_one_scale(decoder):
    wild = replace(decoder, weights_before=((2.0, 4.0),), weights_after=((0.5, 1.0),))
    text = render("html", [wild])
    assert 'fill-opacity="1.000"' in text  # 4 of 4
    assert 'fill-opacity="0.250"' in text  # 1 of 4
    assert "A full cell is 4." in text


def test_weights_that_are_no_numbers_are_crossed_out(decoder):
    text = render("html", [replace(decoder, weights_before=((float("nan"), 1.0),))])
    assert '<td class="number">nan</td>' in text
    assert ">x</text>" in text


def test_a_wrong_axis_is_outlined_and_named(mixer):
    for form in ("html", "notebook"):
        text = render(form, [mixer])
        assert text.count('stroke-width="2.5"') == 2  # T_enc and T_dec, not batch
        assert ">T_enc wrong</text>" in text
        assert ">T_dec wrong</text>" in text
        assert ">must be (batch, T_dec, T_enc)</text>" in text
