import pytest

from regard.check.finding import Evidence, Finding, Location, Report
from regard.check.suppress import suppress

SOURCE = """\
def attend(query, keys):
    scores = query @ keys
    weights = softmax(
        scores,
        dim=1,
    ){comment}
    return weights @ keys


def other(x):
    return x{elsewhere}
"""


def _finding(code="RG301", name="softmax-axis", line=3, end_line=6):
    return Finding(
        code=code,
        name=name,
        level="error",
        target="decoder.py:attend",
        message="`weights` sums to 1 over T_dec",
        location=Location("decoder.py", line, 15, end_line, 6),
        evidence=Evidence("weights-sum-to-one", "sum = 1"),
    )


def _suppress(comment="", elsewhere="", findings=None, **options):
    source = SOURCE.format(comment=comment, elsewhere=elsewhere)
    found = (_finding(),) if findings is None else tuple(findings)
    checked = options.pop("checked", ("weights-sum-to-one",))
    report = Report("decoder.py:attend", found, checked, path="decoder.py")
    report, complaints = suppress(report, source, **options)
    return [finding.suppressed for finding in report.findings], complaints


@pytest.mark.parametrize(
    "comment",
    [
        "  # regard: ignore[RG301] the batch comes last here",
        "  # regard: ignore[softmax-axis] the batch comes last here",
        "  # regard: ignore[RG205, rg301] the batch comes last here",
        "  # regard:ignore[RG301]: the batch comes last here",
        "  # noqa  # regard: ignore[RG301] the batch comes last here",
    ],
)
def test_a_comment_on_a_line_of_the_finding_accepts_it_with_its_reason(comment):
    suppressed, _ = _suppress(comment)
    assert suppressed == ["the batch comes last here"]


def test_findings_stay_in_the_report_and_count_for_nothing():
    report = Report("decoder.py:attend", (_finding(),), ("a",), path="decoder.py")
    assert report.worst == "error"
    source = SOURCE.format(comment="  # regard: ignore[RG301] known", elsewhere="")
    report, complaints = suppress(report, source)
    assert len(report.findings) == 1
    assert report.worst is None
    assert complaints == ()


def test_a_finding_of_another_rule_or_line_is_not_accepted():
    comment = "  # regard: ignore[RG205] known"
    assert _suppress(comment)[0] == [""]
    elsewhere = [_finding(line=2, end_line=2)]
    assert _suppress("  # regard: ignore[RG301] known", findings=elsewhere)[0] == [""]


@pytest.mark.parametrize(
    ("comment", "said"),
    [
        ("# regard: ignore", "ignore names no rule, as # regard: ignore[RG205] reason does"),
        ("# regard: ignore all of it", "names no rule"),
        ("# regard: ignore[] because", "names no rule"),
        ("# regard: ignore[RG301]", "ignore[RG301] gives no reason"),
        ("# regard: ignore[RG301]  -", "gives no reason"),
        ("# regard: ignore[RG3] whole group", "knows no rule 'RG3'"),
        ("# regard: ignore[RG] everything", "knows no rule 'RG'"),
        ("# regard: ignore[sofmax] oh", "knows no rule 'sofmax'"),
    ],
)
def test_a_comment_without_rule_or_reason_accepts_nothing_and_is_reported(comment, said):
    suppressed, complaints = _suppress("  " + comment)
    assert suppressed == [""]
    (complaint,) = complaints
    assert complaint.startswith("decoder.py:6: ignore")
    assert said in complaint
    assert complaint.endswith("nothing is ignored by it")


def test_a_comment_that_accepts_nothing_is_reported():
    comment = "  # regard: ignore[RG301] was so once"
    _, complaints = _suppress(comment, findings=())
    assert complaints == ("decoder.py:6: ignore[RG301] ignores nothing; remove it",)


def test_a_comment_is_not_stale_where_nobody_looked():
    comment = "  # regard: ignore[RG301] was so once"
    assert _suppress("", elsewhere=comment, findings=())[1] == ()  # another target's
    assert _suppress(comment, findings=(), checked=())[1] == ()
    assert _suppress(comment, findings=(), not_asked=("RG3",))[1] == ()
    could_not = [_finding("RG904", "nothing-checked")]
    assert _suppress(comment, findings=could_not)[1] == ()


def test_that_nothing_was_checked_cannot_be_ignored():
    could_not = [_finding("RG904", "nothing-checked")]
    comment = "  # regard: ignore[RG904] never mind"
    assert _suppress(comment, findings=could_not, checked=())[0] == [""]


def test_a_text_that_looks_like_a_comment_is_none():
    source = 'def attend():\n    return "# regard: ignore[RG301] no"\n'
    report = Report("d.py:attend", (_finding(line=2, end_line=2),), ("a",), path="d.py")
    report, complaints = suppress(report, source)
    assert [finding.suppressed for finding in report.findings] == [""]
    assert complaints == ()


def test_a_broken_file_has_no_comments():
    report = Report("d.py:attend", (_finding("RG901", "could-not-load"),), path="d.py")
    assert suppress(report, "def (:\n  # regard: ignore[RG901] x\n'''")[0] == report
