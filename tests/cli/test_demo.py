import time

from regard.cli import demo as demo_module
from regard.cli.main import run
from regard.demo.plan import Job
from regard.demo.pool import Event


def test_no_time_left_is_guessed_before_anything_is_known(capsys, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    job = Job("a", "job a", 100.0, {})
    progress = demo_module._Progress()
    progress.start([job], [])
    for now, share, guessed in ((1, 0.01, False), (5, 0.10, True), (11, 0.12, True)):
        clock[0] = now
        assert ("s left" in progress._line(_event(progress, job, share))) == guessed
    late = demo_module._Progress()
    late.start([job], [])
    clock[0] += 11
    assert "s left" in late._line(_event(late, job, 0.01))


def _event(progress, job: Job, share: float) -> Event:
    progress._shares[job.name] = share
    return Event(job, share, "")


def test_going_on_where_nothing_is_is_refused(tmp_path, capsys):
    assert run(["demo", "--out", str(tmp_path / "o"), "--resume"]) == 2
    assert "drop --resume" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()
