"""Put what the README's `regard check` prints into the README; `--check` only compares."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = "examples/decoder.py:attend"
BEGIN, END = f"<!-- check: {TARGET} -->", "<!-- /check -->"


def printed() -> str:
    """Return what the command prints; its exit code must say that something was found."""
    done = subprocess.run(
        [sys.executable, "-m", "regard", "check", TARGET],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 1:
        raise SystemExit(f"exit code {done.returncode}, not 1:\n{done.stdout}{done.stderr}")
    return done.stdout.rstrip("\n")


def main() -> int:
    """Write the README, or say whether it is up to date."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    block = f"```console\n$ regard check {TARGET}\n{printed()}\n```"
    wanted = f"{before}{BEGIN}\n{block}\n{END}{after}"
    if "--check" in sys.argv[1:]:
        return int(text != wanted)
    readme.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
