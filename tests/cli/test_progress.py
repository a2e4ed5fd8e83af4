from regard.cli.progress import MembersProgress, TrainingProgress
from regard.seq2seq.events import Evaluation, Progress


def _event(step: int, look: Evaluation | None = None) -> Progress:
    return Progress(step, 100, 1.5, 0.01, look, look.error_rate if look else None)


def test_without_a_terminal_there_is_a_line_a_tenth_and_one_for_each_look(capsys):
    with TrainingProgress(100) as progress:
        for step in range(1, 101):
            look = Evaluation(step, 1.5, 0.25) if step == 33 else None
            progress.show(_event(step, look))
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == ""
    assert len(lines) == 11
    assert "step 33/100  loss 1.500  held-out error rate 25.00 %" in lines[3]
    assert all("s left" in line for line in lines[:-1])
    assert lines[-1] == "step 100/100  loss 1.500"


def test_in_a_terminal_there_is_a_bar_with_the_time_left(capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    with TrainingProgress(100) as progress:
        for step in range(1, 101):
            progress.show(_event(step, Evaluation(step, 1.5, 0.25)))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "100/100" in captured.err
    assert "error rate 25.00 %" in captured.err
    assert "0:00:00" in captured.err


def test_with_a_time_budget_the_lines_follow_the_time(capsys):
    with TrainingProgress(10**9, budget=50.0) as progress:
        for step in range(1, 101):
            total = 100 if step > 3 else 10**9
            progress.show(
                Progress(step, total, 1.5, 0.01, None, None, step / total, seconds=step / 2)
            )
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert lines[0] == "step 10/100  loss 1.500  about 45 s left"
    assert lines[-1] == "step 100/100  loss 1.500"


def test_a_process_that_is_not_the_first_says_nothing(capsys):
    with TrainingProgress(100, quiet=True) as progress:
        for step in range(1, 101):
            progress.show(_event(step))
    assert capsys.readouterr().err == ""


def test_members_say_which_they_are_at_each_tenth_and_each_look(capsys):
    progress = MembersProgress()
    for step in range(1, 101):
        for member in (0, 1):
            look = Evaluation(step, 1.5, 0.25) if step == 33 else None
            event = Progress(step, 100, 1.5, 0.01, look, None, step / 100, seconds=step / 2)
            progress.show(member, event)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 22
    look = "member 1  33 %  step 33  loss 1.500  held-out error rate 25.00 %"
    assert f"{look}  about 34 s left" in lines
