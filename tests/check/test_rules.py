"""The rules as records: complete, findable, selectable, and said in one voice."""

import re

import pytest

from regard.check.rules import GROUPS, Selection, chosen, every, find
from regard.check.rules.page import as_mapping, diff, index, markdown, text
from regard.errors import InputError

# The codes and levels that were promised; a code is never used again.
PROMISED = {
    "RG1": "EEEEEW",
    "RG2": "EEEEWEEE",
    "RG3": "EEEEE",
    "RG4": "EEWE",
    "RG5": "WWNN",
    "RG6": "EEW",
    "RG7": "EEEE",
    "RG8": "EEE",
    "RG9": "EEEE",
}
RULES = pytest.mark.parametrize("rule", every(), ids=lambda rule: f"{rule.code}-{rule.name}")


def test_every_promised_code_is_there_with_its_level_and_no_other():
    letters = {"E": "error", "W": "warning", "N": "note"}
    promised = {
        f"{group}{number:02}": letters[letter]
        for group, levels in PROMISED.items()
        for number, letter in enumerate(levels, 1)
    }
    assert {rule.code: rule.level for rule in every()} == promised


def test_names_are_kebab_case_and_belong_to_one_rule():
    names = [rule.name for rule in every()]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)


@RULES
def test_a_rule_tells_everything_in_whole_sentences(rule):
    for told in (rule.what, rule.hides, rule.recipe, rule.not_a_bug):
        assert told[0].isupper() or told[0] == "`", told
        assert told.endswith("."), told
    assert not rule.title.endswith(".")
    assert rule.equation
    assert rule.group == GROUPS[rule.code[:3]]


@RULES
def test_the_examples_declare_what_their_entry_takes(rule):
    for example in (rule.bad, rule.good):
        assert re.search(rf"^(def|class) {example.entry}\b", example.source, re.MULTILINE)
        assert example.source.endswith("\n")
        assert not re.search(r"\.\.\.[A-Z]", example.source)  # no place was left open
        assert max(map(len, example.source.splitlines())) <= 96
        for name in example.contract.get("inputs", {}):
            assert re.search(rf"[(, ]{name}[,)]", example.source), name


@RULES
def test_the_example_is_mended_by_few_lines(rule):
    if rule.group != "run":
        assert 1 <= len(diff(rule)) <= 6


@RULES
def test_every_form_of_a_rule_tells_the_same(rule):
    told, page, mapping = text(rule), markdown(rule), as_mapping(rule)
    for part in (rule.title, rule.bad.prints, rule.good.prints if rule.group != "run" else ""):
        for line in part.splitlines():
            assert line in told
            assert line in page
    assert page.startswith(f"# {rule.code} {rule.name}\n")
    assert mapping["bad"]["source"] == rule.bad.source
    assert f"[{rule.code}]({rule.code}.md)" in index(every())


@pytest.mark.parametrize("name", ["RG301", "rg301", "softmax-axis", "Softmax_Axis", " RG301 "])
def test_a_rule_is_found_by_code_and_by_name(name):
    assert find(name).code == "RG301"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("RG306", "did you mean RG301 (softmax-axis)"),
        ("sofmax-axis", "did you mean softmax-axis (RG301)?"),
        ("zebra", "`regard rules` lists them all"),
        ("RG001", "`regard rules` lists them all"),
        ("", "`regard rules` lists them all"),
    ],
)
def test_an_unknown_rule_is_answered_with_the_nearest(name, said):
    with pytest.raises(InputError) as caught:
        find(name)
    assert f"no rule is called {name!r}" in str(caught.value)
    assert said in str(caught.value)


def test_a_selection_takes_codes_names_and_groups_and_leaves_out_what_is_ignored():
    kept = Selection.of(["RG2,softmax-axis", "heads"], ["RG205", "mask-on-queries"])
    asked = ("RG101", "RG201", "RG205", "RG208", "RG301", "RG302", "RG401", "RG404", "RG501")
    assert [code for code in asked if code in kept] == ["RG201", "RG301", "RG401", "RG404"]


def test_no_selection_is_every_rule():
    assert all(rule.code in Selection.of() for rule in every())


def test_a_selection_never_hides_that_nothing_was_checked():
    assert "RG904" in Selection.of(["RG301"], ["RG9", "nothing-checked"])
    assert "RG302" not in Selection.of(["RG301"])


def test_a_selection_refuses_what_it_does_not_know():
    with pytest.raises(InputError, match="no rule is called 'maks'"):
        Selection.of(["maks"])


def test_chosen_rules_come_in_the_order_of_their_codes():
    assert [rule.code for rule in chosen(["RG402", "numerics"])] == [
        "RG402",
        "RG601",
        "RG602",
        "RG603",
    ]
    assert chosen([]) == every()
