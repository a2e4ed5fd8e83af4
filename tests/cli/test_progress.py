from regard.cli.progress import TrainingProgress
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
