"""``--format json``: the records as they are; ``regard/check/schema.json`` describes them."""

import json
import re
from collections.abc import Sequence
from typing import Any

from regard.check.finding import Report

__all__ = ["dumped", "render"]


def render(reports: Sequence[Report]) -> str:
    """Return one object: the report of one target, or ``{"results": [...]}`` for several."""
    if len(reports) == 1:
        return dumped(reports[0].as_json())
    return dumped({"results": [report.as_json() for report in reports]})


def dumped(value: Any, *, indent: int | None = 2) -> str:
    """Return JSON that every reader takes: no NaN, and no half of a character."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half.group()):04x}", text)
