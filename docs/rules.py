"""Write a page for every rule of `regard check` into docs/rules/; `--check` only compares."""

import sys
from pathlib import Path

from regard.check.rules import every
from regard.check.rules.page import index, markdown

FOLDER = Path(__file__).resolve().parent / "rules"


def pages() -> dict[str, str]:
    """Return the text of each file by its name."""
    return {"README.md": index(every()), **{f"{r.code}.md": markdown(r) for r in every()}}


def main() -> int:
    """Write the pages, or say which are not up to date."""
    wanted = pages()
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    stale = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
    if "--check" in sys.argv[1:]:
        if stale:
            print(f"python docs/rules.py would change: {', '.join(stale)}", file=sys.stderr)
        return int(bool(stale))
    FOLDER.mkdir(exist_ok=True)
    for name in stale:
        if name in wanted:
            (FOLDER / name).write_text(wanted[name], encoding="utf-8")
        else:
            (FOLDER / name).unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
