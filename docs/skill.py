"""Write the generated part of the skill for coding assistants; `--check` only compares."""

import sys

from regard.check.skill import FOLDER, RULES, files, rules_page


def main() -> int:
    """Write the page of rules, or say that it is not up to date."""
    if "--check" in sys.argv[1:]:
        if files().get(RULES) != rules_page():
            print(f"python docs/skill.py would change {RULES}", file=sys.stderr)
            return 1
        return 0
    path = FOLDER / RULES
    path.parent.mkdir(exist_ok=True)
    path.write_text(rules_page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
