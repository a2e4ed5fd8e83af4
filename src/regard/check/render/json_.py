"""``--format json``: the records as they are; ``regard/check/schema.json`` describes them."""

import json
import re
from collections.abc import Sequence
from typing import Any

from regard.check.finding import Report

__all__ = ["dumped", "render"]

# What a terminal obeys, what turns the direction of writing, and halves of characters.
_INVISIBLE = re.compile(
    "[\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff]"
)


def render(reports: Sequence[Report]) -> str:
    """Return one object: the report of one target, or ``{"results": [...]}`` for several."""
    if len(reports) == 1:
        return dumped(reports[0].as_json())
    return dumped({"results": [report.as_json() for report in reports]})


def dumped(value: Any, *, indent: int | None = 2) -> str:
    """Return JSON that every reader takes: no NaN, no half characters, nothing invisible."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
