"""Put what the README's `regard check` prints into the README; `--check` only compares."""

import subprocess
import sys
from pathlib import Path

from written import between, written

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
TARGET = "examples/decoder.py:attend"
BEGIN, END = f"<!-- check: {TARGET} -->", "<!-- /check -->"


def block() -> str:
    """Return the command and what it prints; its exit code must say: something found."""
    done = subprocess.run(
        [sys.executable, "-m", "regard", "check", TARGET],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 1:
        raise SystemExit(f"exit code {done.returncode}, not 1:\n{done.stdout}{done.stderr}")
    printed = done.stdout.rstrip("\n")
    return f"```console\n$ regard check {TARGET}\n{printed}\n```"


if __name__ == "__main__":
    sys.exit(written(README, between(README, BEGIN, END, f"\n{block()}\n")))
