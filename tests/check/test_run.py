import os
import threading
from pathlib import Path

import pytest

from regard.check.failure import Failure, could_not_check, failed
from regard.check.finding import Evidence, Finding, Location, Report
from regard.check.process import WorkerProcess
from regard.check.rules import Selection
from regard.check.run import Job, check_jobs, check_targets, exit_code, settle
from regard.check.settings import Limits
from regard.check.target import Broken, Target
from regard.errors import InputError

ENGINE = "check_engines:call"
TESTS = str(Path(__file__).parents[1])


@pytest.fixture(autouse=True)
def engines(monkeypatch, tmp_path):
    path = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (TESTS, path))))
    monkeypatch.chdir(tmp_path)


def _target(number, body="return {}"):
    path = f"t{number}.py"
    source = "import time\ndef attend():\n    " + body.format(number) + "\n"
    Path(path).write_text(source, encoding="utf-8")
    return Target(path, "attend", source)


def _finding(code="RG301", level="error", **changes):
    return Finding(
        code, "a-name", level, "t", "m", Location("t.py", 2), Evidence("", ""), **changes
    )


def _report(*findings, checked=("a",)):
    return Report("t.py:attend", findings, checked, path="t.py")


@pytest.mark.parametrize("jobs", [1, 3])
def test_reports_come_in_the_order_of_the_targets_whatever_they_take(jobs):
    bodies = ["time.sleep(0.3); return {}", "return {}", "raise SystemExit", "return {}", "1/0"]
    targets = [_target(number, body) for number, body in enumerate(bodies)]
    targets.insert(2, Target("b.py", "attend", "(", Broken("never closed", 1)))
    reports = check_targets(targets, jobs=jobs, engine=ENGINE)
    assert [report.signature for report in reports] == ["0", "1", "", "", "3", ""]
    assert [report.target for report in reports] == [target.name for target in targets]
    assert [could_not_check(report) for report in reports] == [
        *(False, False, True, True, False, True)
    ]


def test_no_targets_are_no_reports():
    assert check_targets([], engine=ENGINE) == []


def test_two_processes_run_at_once(monkeypatch):
    both = threading.Barrier(2)

    def check(self, target, contract, options):
        both.wait(timeout=60)
        return _report()

    monkeypatch.setattr(WorkerProcess, "check", check)
    assert len(check_targets([_target(3), _target(5)], jobs=2)) == 2


def test_each_job_has_its_own_contract_and_options():
    work = [Job(_target(n), {"score": score}, {"seed": n}) for n, score in ((3, "a"), (5, "b"))]
    reports = dict(check_jobs(work, engine=ENGINE))
    assert [(reports[n].seed, reports[n].assumptions[0]) for n in (0, 1)] == [
        (3, "{'score': 'a'}"),
        (5, "{'score': 'b'}"),
    ]


def test_stopping_early_ends_the_processes(monkeypatch):
    closed = []
    close = WorkerProcess.close
    monkeypatch.setattr(WorkerProcess, "close", lambda self: (closed.append(self), close(self)))
    work = [Job(_target(1)), *(Job(_target(n, "time.sleep(99)")) for n in (2, 3))]
    running = check_jobs(work, processes=2, engine=ENGINE, limits=Limits(60.0))
    assert next(running)[0] == 0
    with pytest.raises(KeyboardInterrupt):
        running.throw(KeyboardInterrupt())
    assert len(closed) >= 2
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and "serve" in thread.name:
            thread.join(timeout=30)
            assert not thread.is_alive()


def test_an_error_of_ours_in_a_thread_is_raised_where_it_is_seen(monkeypatch):
    def broken(self, *arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(WorkerProcess, "check", broken)
    with pytest.raises(ZeroDivisionError):
        check_targets([_target(1)], engine=ENGINE)


def test_what_is_not_selected_is_left_out_and_what_is_accepted_stays():
    report = _report(_finding("RG301"), _finding("RG205"), _finding("RG302"))
    source = "def attend():\n    pass  # regard: ignore[RG302] known\n"
    report = Report(report.target, report.findings, report.checked, source=source, path="t.py")
    kept = settle(report, Selection.of(["RG3"]))
    assert [(f.code, f.suppressed) for f in kept.findings] == [
        ("RG301", ""),
        ("RG302", "known"),
    ]


def test_the_reason_that_nothing_was_checked_is_never_left_out():
    report = failed(Target("t.py", "attend", ""), Failure("time", "3 s"))
    assert settle(report, Selection.of(["RG301"])).findings == report.findings


def test_complaints_about_comments_are_passed_on():
    said = []
    report = Report("t.py:attend", (), ("a",), source="# regard: ignore\n", path="t.py")
    settle(report, Selection.of(), warn=said.append)
    assert said == [
        "t.py:1: ignore names no rule, as # regard: ignore[RG205] reason does; "
        "nothing is ignored by it"
    ]


LIMIT = _finding("RG904")


@pytest.mark.parametrize(
    ("reports", "fail_on", "code"),
    [
        ([_report()], "error", 0),
        ([_report(_finding())], "error", 1),
        ([_report(_finding(level="warning"))], "error", 0),
        ([_report(_finding(level="warning"))], "warning", 1),
        ([_report(_finding(level="note"))], "warning", 0),
        ([_report(_finding(level="note"))], "note", 1),
        ([_report(_finding(), _finding(level="note"))], "error", 1),
        ([_report(_finding(suppressed="known"))], "note", 0),
        ([_report(LIMIT, checked=())], "error", 2),
        ([_report(checked=())], "error", 2),
        ([_report(LIMIT, _finding())], "error", 1),
        ([_report(_finding()), _report(LIMIT, checked=())], "error", 2),
        ([_report(), _report(_finding())], "error", 1),
        ([], "error", 2),
    ],
)
def test_the_exit_code(reports, fail_on, code):
    assert exit_code(reports, fail_on) == code


def test_an_unknown_rule_to_select_is_refused():
    with pytest.raises(InputError, match="softmax-axis"):
        Selection.of(["softmax-axes"])
