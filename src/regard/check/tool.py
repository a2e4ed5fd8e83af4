"""The tools that assistants call: names, words, and JSON schemas of arguments and answers."""

import dataclasses
import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any

from regard.check.contract import Contract

__all__ = ["TOOLS", "Answer", "Tool"]


@dataclass(frozen=True)
class Answer:
    """What a tool says: data, and the same for a reader."""

    data: dict[str, Any]
    text: str


@dataclass(frozen=True)
class Tool:
    """How a tool is called: JSON schemas of its arguments and of its answer."""

    name: str
    title: str
    description: str
    arguments: Mapping[str, Any]
    required: tuple[str, ...]
    answer: Mapping[str, Any]
    writes: bool = False

    @property
    def input_schema(self) -> dict[str, Any]:
        """The schema of the arguments."""
        return {
            "type": "object",
            "properties": dict(self.arguments),
            "required": list(self.required),
            "additionalProperties": False,
        }

    @property
    def output_schema(self) -> dict[str, Any]:
        """The schema of the answer, with the definitions of a report."""
        return {
            "type": "object",
            "properties": dict(self.answer),
            "required": list(self.answer),
            "additionalProperties": False,
            "$defs": _definitions(),
        }


@functools.cache
def _definitions() -> dict[str, Any]:
    file = resources.files("regard.check") / "schema.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))["$defs"]
    return found


_RESULTS = {
    "results": {"type": "array", "items": {"$ref": "#/$defs/report"}},
    "exit_code": {
        "enum": [0, 1, 2],
        "description": "0: checked, nothing found. 1: something was found. 2: not checked.",
    },
}
_TEXT = {"type": "string"}
_FINGERPRINT = {**_TEXT, "description": "`fingerprint` of a finding that `check` reported."}
_STATED = sorted(
    field.name for field in dataclasses.fields(Contract) if field.name != "sums_over"
)

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool(
            "check",
            "Check attention code",
            "Run attention code and measure what is wrong with it: the tensor, its right shape "
            "in named axes, the line, and a fix that was proven by running it. The code is "
            "executed in a process with limits; nothing is written. exit_code 2 means that "
            "nothing was checked: then declare what is missing, never guess.",
            {
                "target": {
                    **_TEXT,
                    "description": "file.py:name, file.py:Class.method, a file or a folder",
                },
                "contract": {
                    "type": "object",
                    "description": "What the author declares. Fields: " + ", ".join(_STATED),
                },
                "statements": {
                    "type": "object",
                    "description": "Single fields of a contract, added to what is guessed, as "
                    '{"inputs": {"q": "batch T_dec d_h"}, "kinds": {"mask": "keep"}}',
                },
                "seed": {"type": "integer", "description": "Of the inputs; 0 if left out."},
            },
            ("target",),
            _RESULTS,
        ),
        Tool(
            "explain",
            "Explain a rule",
            "Say what a rule means, show the smallest code that breaks it, why nobody notices, "
            "how to mend it, and when it is not a bug.",
            {"code": {**_TEXT, "description": "A code or name, as RG301 or softmax-axis."}},
            ("code",),
            {"rule": {"type": "object"}},
        ),
        Tool(
            "apply_fix",
            "Apply a proven fix",
            "Check again, write the proven fix of a finding into its file, check once more. "
            "Refused unless the fix is proven.",
            {"fingerprint": _FINGERPRINT},
            ("fingerprint",),
            {"diff": _TEXT, **_RESULTS},
            writes=True,
        ),
        Tool(
            "write_test",
            "Write a regression test",
            "Check again, and write a pytest file that fails while the finding is there.",
            {
                "fingerprint": _FINGERPRINT,
                "path": {**_TEXT, "description": "test_*.py; beside the file if left out."},
            },
            ("fingerprint",),
            {"path": _TEXT, "test": _TEXT, "run": _TEXT},
            writes=True,
        ),
    )
}
