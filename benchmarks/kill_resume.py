"""Kill ``regard train`` with SIGKILL at random moments, resume it, and compare the end.

    python benchmarks/kill_resume.py --rounds 20 --out docs/results/kill_resume.json

One run is left alone. Then, once a round, the same command is killed at a moment that is drawn
evenly from the time that the undisturbed run took from when its directory appeared to its end;
in every fifth round the start of the process, before there is a directory, is drawn from too.
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
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from regard.files import write_json
from regard.seq2seq.checkpoint import load_description, load_model, load_training

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
        where = place / str(number)
        where.mkdir()
        (where / "pairs.tsv").write_bytes((place / "pairs.tsv").read_bytes())
        early = number % 5 == 0
        moment = moments.uniform(0.0, working + (starting if early else 0.0))
        killed = _kill(command, where, moment, from_start=early)
        inside, step = _read_all(where / "run")
        resume = ["--resume"] if (where / "run").is_dir() else []
        found = _finish([*command, *resume], where)
        rounds.append(
            {
                "moment": round(moment, 2),
                "counted_from": "start" if early else "directory",
                "killed": killed,
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


def _kill(command: list[str], where: Path, moment: float, *, from_start: bool) -> bool:
    """Start a run, kill it after so many seconds, and return whether it was still running."""
    with _started(command, where) as process:
        if not from_start:
            _wait_for_directory(process, where)
        try:
            process.wait(timeout=moment)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
        return process.wait() == -signal.SIGKILL


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
