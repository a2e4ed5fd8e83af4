"""The report page: well formed, closed to the network, the audit's own numbers, nothing raw."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from regard.audit.page import page
from regard.audit.run import audit
from regard.audit.verdict import Token

_VOID = {"meta", "br"}


class _Nesting(HTMLParser):
    """Every element that is opened is closed, in order."""

    def __init__(self):
        super().__init__()
        self.open, self.faults, self.text = [], [], []

    def handle_starttag(self, tag, attributes):
        if tag not in _VOID:
            self.open.append(tag)
        self.faults += [f"{tag} {name}" for name, _ in attributes if name in ("src", "href")]

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def found(deceived_model, planted):
    return audit(deceived_model, planted, tests=["erase_input", "gold_mass", "uniform"])


def _read(text):
    reader = _Nesting()
    reader.feed(text)
    return reader


def test_every_element_is_closed_and_nothing_is_fetched(found):
    text = page(found)
    reader = _read(text)
    assert reader.open == []
    assert reader.faults == []
    assert "http:" not in text
    assert "https:" not in text
    assert "url(" not in text
    assert "default-src 'none'" in text


def test_verdict_claims_gates_tables_and_worst_inputs_are_there(found):
    shown = " ".join("".join(_read(page(found)).text).split())
    assert " ".join(found.verdict.text.split()) in shown
    for gate in found.verdict.gates:
        assert gate.name in shown
    for table in found.tables:
        for row in table.rows:
            assert f"{row.estimate.value:.3f}" in shown
    assert len(re.findall("<figure>", page(found))) == 10
    for name, why in found.verdict.not_tested:
        assert f"{name}: {why}" in shown


def test_tokens_cannot_break_out(found):
    first = found.worst[0]
    hostile = Token("<script>alert(1)</script>", 0.5, None)
    changed = replace(first, tokens=(hostile, *first.tokens), before=("<b>",))
    text = page(replace(found, worst=(changed,), subject='"><img src=x>'))
    assert "<script" not in text
    assert "<img" not in text
    assert _read(text).open == []


def test_the_page_never_says_what_an_answer_is_due_to_as_a_finding(found):
    shown = "".join(_read(page(found)).text).lower()
    assert "because" not in shown
    assert "the reason" not in shown


def test_a_stopped_audit_has_a_page_too(found):
    verdict = replace(found.verdict, status="stopped", headline="STOPPED AT G0")
    text = page(replace(found, verdict=verdict, tables=(), worst=()))
    assert "STOPPED AT G0" in text
    assert _read(text).open == []
