"""Kill ``regard train`` with SIGKILL at random moments, resume it, and compare the end.

    python benchmarks/kill_resume.py --rounds 20 --out docs/results/kill_resume.json

One run is left alone. Then, once a round, the same command is started, and killed on its way.
The moment belongs to the run, not to the clock: a number of steps is drawn, and when
``log.csv``, which has a row every ten steps, shows that as many are done, the kill follows
within what ten steps take. A step beyond the last stands for the time after it, in which the
best looks are averaged, scored and saved. In every fifth round it falls between the start
of the process and the first row: importing, reading, claiming the directory. A run that ended
before the signal came is thrown away and the round drawn anew: every round is a kill, and how
many were thrown away is in the report.

Every file that is there is read, and the command is given again with --resume (without it, if
there is no directory). Weights, training state and printed scores must be those of the
undisturbed run, to the byte.
"""

import argparse
import hashlib
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from regard.files import write_json
from regard.seq2seq.checkpoint import load_description, load_model, load_training

_EVERY = 10
"""Steps between two rows of log.csv."""

SAME = ("config.json", "vocab.json", "model.safetensors", "training.safetensors")


def main() -> int:
    """Run the rounds; the exit code is 1 if any of them ended otherwise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--save-every", default="0.3s", help="as regard train takes it")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        report = _rounds(Path(place), options)
    for entry in report["rounds"]:
        print(json.dumps(entry))
    bad = [entry for entry in report["rounds"] if not entry["same"]]
    print(f"{len(report['rounds']) - len(bad)} of {len(report['rounds'])} ended the same")
    if options.out is not None:
        write_json(options.out, report)
    return 1 if bad else 0


def _rounds(place: Path, options: argparse.Namespace) -> dict[str, Any]:
    _write_data(place / "pairs.tsv")
    command = [
        *(sys.executable, "-m", "regard", "train", "pairs.tsv", "--out", "run"),
        *("--steps", str(options.steps), "--save-every", options.save_every),
        *("--hidden", "16", "--state", "32", "--batch-tokens", "300", "--average", "3"),
        *("--ema", "0.9", "--format", "json"),
    ]
    (place / "whole").mkdir()
    (place / "whole" / "pairs.tsv").write_bytes((place / "pairs.tsv").read_bytes())
    starting, working, scores = _timed(command, place / "whole")
    wanted = _digests(place / "whole" / "run")
    moments = random.Random(options.seed)
    rounds = []
    for number in range(options.rounds):
        where, missed = place / str(number), -1
        killed: _Kill | None = None
        while killed is None:
            missed += 1
            shutil.rmtree(where, ignore_errors=True)
            where.mkdir()
            (where / "pairs.tsv").write_bytes((place / "pairs.tsv").read_bytes())
            moment = moments.uniform(0.0, 1.0)
            if number % 5 == 0:
                killed = _kill(command, where, after=0, wait=moment * starting)
            else:
                steps = int(moment * (options.steps + _EVERY))
                wait = moments.uniform(0.0, working * _EVERY / options.steps)
                killed = _kill(command, where, after=steps // _EVERY * _EVERY, wait=wait)
        inside, step = _read_all(where / "run")
        resume = ["--resume"] if (where / "run").is_dir() else []
        found = _finish([*command, *resume], where)
        rounds.append(
            {
                "killed_at_step": killed.step,
                "seconds_after_start": round(killed.seconds, 2),
                "thrown_away": missed,
                "files": inside,
                "saved_step": step,
                "same": found == scores and _digests(where / "run") == wanted,
            }
        )
    return {
        "command": " ".join(["regard", *command[3:]]),
        "seconds": {"start": round(starting, 2), "after": round(working, 2)},
        "scores": scores,
        "rounds": rounds,
        "torch": str(torch.__version__),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def _write_data(path: Path) -> None:
    """Words and themselves backwards, in capitals."""
    draw = random.Random(1)
    words = {"".join(draw.choices("abcdefghij", k=draw.randint(2, 9))) for _ in range(1500)}
    lines = [f"{word}\t{word[::-1].upper()}\n" for word in sorted(words)]
    path.write_text("".join(lines), encoding="utf-8")


def _started(command: list[str], where: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command, cwd=where, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def _wait_for_directory(process: "subprocess.Popen[str]", where: Path) -> None:
    while process.poll() is None and not (where / "run").is_dir():
        time.sleep(0.01)


def _timed(command: list[str], where: Path) -> tuple[float, float, dict[str, Any]]:
    """Run to the end; return the seconds before and after there was a directory, and scores."""
    began = time.monotonic()
    with _started(command, where) as process:
        _wait_for_directory(process, where)
        appeared = time.monotonic()
        out, _ = process.communicate()
    return appeared - began, time.monotonic() - appeared, json.loads(out)


@dataclass(frozen=True)
class _Kill:
    """A run that was killed before its end."""

    step: int
    """The last that log.csv had; 0 if none."""

    seconds: float


def _kill(command: list[str], where: Path, *, after: int, wait: float) -> _Kill | None:
    """Start a run, wait for a step and some seconds, kill it; None if it had ended by then."""
    began = time.monotonic()
    with _started(command, where) as process:
        while process.poll() is None and _last_step(where / "run") < after:
            time.sleep(0.02)
        try:
            process.wait(timeout=wait)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
        if process.wait() != -signal.SIGKILL:
            return None
    return _Kill(_last_step(where / "run"), time.monotonic() - began)


def _last_step(run: Path) -> int:
    """Return the step of the last whole row of a log, 0 where there is none."""
    try:
        *whole, _ = (run / "log.csv").read_text(encoding="utf-8").split("\n")
    except OSError:
        return 0
    return int(whole[-1].partition(",")[0]) if len(whole) > 1 else 0


def _finish(command: list[str], where: Path) -> dict[str, Any]:
    """Run to the end, and return what is printed."""
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"exit code {done.returncode}\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _read_all(run: Path) -> tuple[list[str], int | None]:
    """Read every file that a killed run left; one that cannot be read ends the benchmark."""
    if not run.is_dir():
        return [], None
    inside = sorted(path.name for path in run.iterdir() if not path.name.startswith("."))
    step = None
    if {"config.json", "vocab.json"} <= set(inside):
        load_description(run)
    if "model.safetensors" in inside:
        load_model(run)
    if "training.safetensors" in inside:
        step = int(load_training(run).info["step"])
    return inside, step


def _digests(run: Path) -> dict[str, str]:
    return {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in SAME}


if __name__ == "__main__":
    sys.exit(main())
