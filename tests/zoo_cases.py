"""The files of the zoo and their contracts, for the tests that use them."""

import json
import re
from pathlib import Path
from typing import Any

ZOO = Path(__file__).parent / "zoo"
EXPECT = re.compile(r"# expect: (RG\d{3})")
BAD = sorted(ZOO.glob("bad/*.py"))
GOOD = sorted(ZOO.glob("good/*.py"))


def contract_of(path: Path) -> dict[str, Any]:
    """What the author of a file declares."""
    loaded: dict[str, Any] = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    return loaded


def entry_of(path: Path) -> str:
    """The function or class to check."""
    return str(contract_of(path)["target"].partition(":")[2])
