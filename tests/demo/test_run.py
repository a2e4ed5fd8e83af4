"""The main job end to end, in its quick form, and what goes wrong around it."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest

import regard as rg
from regard.demo import work
from regard.demo.plan import Plan
from regard.demo.pool import run_jobs
from regard.demo.run import run_demo
from regard.seq2seq.workers import WorkerError

SMALL = replace(
    Plan.quick(),
    steps=30,
    longest=5,
    lengths=(3, 7),
    sequences=20,
    shown_length=3,
    attentions=("none", "dot"),
    seeds=2,
    test_words=40,
)


def _numbers(path):
    """Return demo.json without what a clock decides."""
    results = json.loads((path / "demo.json").read_text())
    for model in results["copy"]["models"].values():
        del model["cpu_seconds"]
    del results["g2p"]["cpu_seconds"], results["made_by"]
    return results


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One finished small run."""
    out = tmp_path_factory.mktemp("demo") / "out"
    results = run_demo(SMALL, out, processes=2, command="regard demo")
    assert results is not None
    return out


def test_demo_json_holds_every_number_per_seed(finished):
    results = json.loads((finished / "demo.json").read_text())
    copy = results["copy"]
    assert copy["chance"] == 1 / 16
    assert set(copy["models"]) == {"none", "dot"}
    for model in copy["models"].values():
        for measure in ("token_accuracy", "exact_match"):
            assert set(model[measure]) == {"3", "7"}
            assert all(len(seeds) == 2 for seeds in model[measure].values())
            assert all(0 <= x <= 1 for seeds in model[measure].values() for x in seeds)
    letters = results["g2p"]
    assert letters["n_test"] == 40
    assert letters["per"] > 0
    assert 0 < letters["wer"] <= 1
    assert results["made_by"]["command"] == "regard demo"


def test_the_report_and_the_pictures_are_there(finished):
    report = (finished / "report.html").read_text()
    assert "What did attention fix?" in report
    for name in ("accuracy", "alignments", "word_1"):
        assert (finished / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (finished / f"{name}.svg").read_text().lstrip().startswith("<")


def test_the_letters_to_sounds_model_is_left_ready_for_use(finished):
    from regard.seq2seq.transducer import Transducer

    said = Transducer.load(finished / "g2p-model").predict(["HELLO"])[0]
    assert said.source == "HELLO"


def test_one_process_gives_the_same_numbers_as_two(finished, tmp_path):
    run_demo(SMALL, tmp_path / "again", processes=1, command="another")
    assert _numbers(tmp_path / "again") == _numbers(finished)


def test_a_run_that_was_stopped_goes_on_to_the_same_numbers(finished, tmp_path):
    out, seen = tmp_path / "out", []

    stopped = run_demo(
        SMALL,
        out,
        processes=2,
        command="c",
        on_event=seen.append,
        asked_to_stop=lambda: len(seen) > 12,
    )
    assert stopped is None
    assert not (out / "demo.json").exists()
    done_before = []
    run_demo(
        SMALL,
        out,
        processes=2,
        command="c",
        resume=True,
        on_start=lambda jobs, done: done_before.extend(done),
    )
    assert len(done_before) < len(SMALL.jobs())
    assert _numbers(out) == _numbers(finished)


def test_a_finished_run_is_drawn_again_without_training(finished):
    before = _numbers(finished)
    (finished / "report.html").unlink()
    events = []
    run_demo(SMALL, finished, processes=2, command="c", resume=True, on_event=events.append)
    assert not events
    assert (finished / "report.html").exists()
    assert _numbers(finished) == before


def test_a_killed_copy_job_goes_on_from_its_checkpoint(tmp_path):
    job = next(job for job in SMALL.jobs() if job.name == "copy-dot-0").work
    whole = work.do(job, tmp_path / "a.safetensors", tmp_path, lambda share, said: None)

    class KilledError(Exception):
        pass

    def kill(share, said):
        if share > 0.5:
            raise KilledError

    monkey = pytest.MonkeyPatch()
    monkey.setattr(work, "_SAVE_EVERY", 0.0)
    with monkey.context(), pytest.raises(KilledError):
        work.do(job, tmp_path / "b.safetensors", tmp_path, kill)
    monkey.undo()
    shares = []
    rest = work.do(
        job, tmp_path / "b.safetensors", tmp_path, lambda share, said: shares.append(share)
    )
    assert shares[0] > 0.4
    for part in ("token_accuracy", "exact_match", "alignment"):
        assert rest[part] == whole[part]


def test_another_plan_is_not_taken_up(finished):
    with pytest.raises(rg.InputError) as caught:
        run_demo(replace(SMALL, steps=31), finished, processes=1, command="c", resume=True)
    assert "the run in it has another plan" in str(caught.value)
    assert "expected  steps = 30" in str(caught.value)
    assert "got       steps = 31" in str(caught.value)


def test_a_directory_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    for resume in (False, True):
        with pytest.raises(rg.InputError, match=r"the directory is not empty|no run to go on"):
            run_demo(SMALL, tmp_path, processes=1, command="c", resume=resume)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_force_never_writes_over_files_of_another_kind(tmp_path):
    (tmp_path / "demo.json").write_text("mine")
    with pytest.raises(rg.InputError, match=r"no run of ours(.|\n)*choose another --out"):
        run_demo(SMALL, tmp_path, processes=1, command="c", force=True)
    assert (tmp_path / "demo.json").read_text() == "mine"
    assert os.listdir(tmp_path) == ["demo.json"]


def test_there_is_nothing_to_go_on_with_in_a_new_or_an_empty_directory(tmp_path):
    for out in (tmp_path / "new", tmp_path):
        with pytest.raises(rg.InputError, match=r"no run to go on(.|\n)*drop --resume"):
            run_demo(SMALL, out, processes=1, command="c", resume=True)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("content", ["{", "[]", '{"plan": 3}'])
def test_broken_notes_of_a_run_are_named(tmp_path, content):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "run.json").write_text(content)
    with pytest.raises(rg.InputError, match=r"run.json: the notes(.|\n)*choose another --out"):
        run_demo(SMALL, tmp_path, processes=1, command="c", resume=True)


def test_a_worker_that_dies_is_reported_with_its_exit_code(tmp_path):
    jobs = [job for job in SMALL.jobs() if job.name == "copy-dot-0"]

    def kill(event):
        pids = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(os.getpid())],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for pid in pids:
            if b"spawn_main" in _command_line(pid):
                os.kill(int(pid), signal.SIGKILL)

    with pytest.raises(WorkerError, match="exit code -9"):
        run_jobs(
            jobs,
            tmp_path,
            tmp_path / "model",
            processes=1,
            on_event=kill,
            asked_to_stop=lambda: False,
        )


def _command_line(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


@pytest.mark.slow
def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, "-m", "regard", "demo", "--quick", "--out", str(out)]
    process = subprocess.Popen(
        [*command, "--steps", "100000", "--attention", "dot"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    checkpoint = out / "work" / "copy-dot-0.safetensors"
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.2)
    before = checkpoint.stat().st_mtime_ns
    time.sleep(1)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to parent and workers alike
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "stopped and saved; go on with" in said
    assert f"regard demo --out {out} --quick --seed 0 --steps 100000" in said
    assert "--resume" in said
    assert checkpoint.stat().st_mtime_ns > before
