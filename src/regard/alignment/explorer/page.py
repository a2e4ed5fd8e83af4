"""The explorer page: its frame, its style, its script and the weights, in one HTML file."""

import base64
import html
import json
import zlib
from collections import Counter
from collections.abc import Iterable
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.alignment.collection import Collection
from regard.alignment.colors import LIGHT, NIGHT, variables
from regard.alignment.counterfactual import Counterfactual
from regard.alignment.explorer.bundle import HERE, script
from regard.alignment.inline import data, policy
from regard.alignment.record import Record
from regard.errors import InputError, explain

__all__ = ["explorer"]

_MOST = 64_000_000  # weights; a browser holds that, and hardly more


def explorer(
    collection: Collection | Iterable[Record], *, title: str = "Alignments", made: str = ""
) -> str:
    """Return the page that explores a collection.

    Parameters
    ----------
    collection : Collection, or its records
    title : str
        Plain text.
    made : str
        The command that repeats it, for the foot of the page; plain text.

    Returns
    -------
    html : str
        A whole document without any address outside itself. Its policy forbids every request.

    Raises
    ------
    InputError
        The collection is empty or has more than 64 million weights.

    Notes
    -----
    A weight takes one byte (so it is off by 1/510 at most) and is compressed: 50 sentences of
    40 tokens with 8 heads stay under 1 MB. Monotonicity and entropy come from the weights as
    they were, before the rounding.
    """
    collection = Collection(collection)
    size = sum(record.weights.size for record in collection)
    if size > _MOST:
        raise InputError(
            explain(
                "explorer(): there are too many weights for a page",
                expected=f"at most {_MOST:,} weights",
                got=f"{size:,} weights",
                help="slice layers and heads, or take fewer sentences",
            )
        )
    code = script()
    frame = Template((HERE / "page.html").read_text(encoding="utf-8"))
    return frame.substitute(
        policy=policy(code),
        title=html.escape(title),
        style=_style(),
        made=f"Made by <code>{html.escape(made)}</code>" if made else "Made by regard.",
        data=_data(collection),
        script=code,
    )


def _style() -> str:
    light, night = variables(LIGHT), variables(NIGHT)
    # Light comes again last: a page that was switched to light on a dark machine stays light,
    # and so does paper.
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        "@media screen and (prefers-color-scheme: dark) {\n"
        f"  :root:not([data-theme='light']) {{ color-scheme: dark; {night} }}\n}}\n"
        "@media screen {\n"
        f"  :root[data-theme='dark'] {{ color-scheme: dark; {night} }}\n}}\n"
        + (HERE / "style.css").read_text(encoding="utf-8")
    )


def _data(collection: Collection) -> str:
    forms: list[dict[str, Any]] = []
    parts, at = [], 0
    for number, record in enumerate(collection, 1):
        parts.append(_as_bytes(record.weights))
        forms.append(
            {
                "name": record.name or str(number),
                "model": record.model,
                "source": record.source,
                "target": record.target,
                "layers": record.layers,
                "heads": record.heads,
                "at": at,
                "measures": _measures(record),
            }
        )
        at += record.weights.size
        changed = {}
        for name, value in record.counterfactuals.items():
            changed[name], more = _changed(value, record, at)
            parts.append(more)
            at += len(more)
        forms[-1]["counterfactuals"] = changed
    packed = base64.b64encode(zlib.compress(b"".join(parts), 9)).decode("ascii")
    text = json.dumps(
        {"records": forms, "packed": packed}, ensure_ascii=False, separators=(",", ":")
    )
    return data(text)


def _changed(value: Counterfactual, record: Record, at: int) -> tuple[dict[str, Any], bytes]:
    """Return a counterfactual for the page, and its positions' bytes, which begin `at`."""
    form: dict[str, Any] = {
        "target": value.target,
        "difference": [round(moved, 3) for moved in value.difference],
    }
    before = record.target if value.unaltered is None else value.unaltered
    if before != record.target:
        form["unaltered"] = before
    if value.how:
        form["how"] = value.how
    if value.positions is None:
        return form, b""
    rows = list(zip(value.positions.target, before, strict=True))
    others = Counter(word for row, own in rows for word in row if word != own)
    # One byte names a word: 0 is the step's own, 255 one of the rest.
    words = [word for word, _ in others.most_common(254)]
    code = {word: number for number, word in enumerate(words, 1)}
    codes = bytes(
        0 if word == own else code.get(word, 255) for row, own in rows for word in row
    )
    form["positions"] = {"at": at, "words": words}
    return form, _as_bytes(value.positions.difference) + codes


def _as_bytes(values: NDArray[np.float64]) -> bytes:
    rounded: NDArray[np.uint8] = np.rint(np.minimum(values, 1.0) * 255).astype(np.uint8)
    return rounded.tobytes()


def _measures(record: Record) -> list[list[dict[str, Any]]]:
    entropy = record.entropy()
    found: list[list[dict[str, Any]]] = []
    for layer, number in enumerate(record.layers):
        row = []
        for place, head in enumerate(record.heads):
            bits = entropy[layer, place]
            known = bits[~np.isnan(bits)]
            monotonicity = record.alignment(layer=number, head=head).monotonicity()
            row.append(
                {
                    "monotonicity": None if monotonicity is None else round(monotonicity, 4),
                    "entropy": round(float(known.mean()), 4) if known.size else None,
                }
            )
        found.append(row)
    return found
