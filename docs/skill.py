"""Write the generated part of the skill for coding assistants; `--check` only compares."""

import sys

from written import written

from regard.check.skill import FOLDER, RULES, rules_page

if __name__ == "__main__":
    sys.exit(written(FOLDER / RULES, rules_page()))
