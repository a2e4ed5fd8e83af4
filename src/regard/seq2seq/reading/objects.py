"""Pairs from JSONL: one JSON object a line."""

import json
from collections.abc import Iterator
from typing import Any

from regard.seq2seq.reading.columns import Columns
from regard.seq2seq.reading.fault import Fault, excerpt
from regard.seq2seq.reading.record import Record, empty, odd

__all__ = ["object_records"]


class _Wrong(Exception):  # noqa: N818 - never leaves this module
    """Arguments: code, what is wrong, expected, got, remedy."""


def object_records(
    lines: Iterator[tuple[int, str] | Fault], columns: Columns
) -> Iterator[Record | Fault]:
    """Yield the pairs of JSON objects, and what is wrong with those that are none.

    A target is a text, or a list of texts: several references. Features are a text, or a list
    of texts, one each.

    Parameters
    ----------
    lines : iterator
        As :func:`~regard.seq2seq.reading.text.text_lines` yields them.
    columns : Columns
        Of keys.
    """
    roles = ("source", "target", "features")
    keys = {role: [str(key) for key in columns.of(role, keys=True)] for role in roles}
    for line in lines:
        if isinstance(line, Fault):
            yield line
        elif line[1] and not line[1].isspace():
            try:
                yield _record(*line, keys)
            except _Wrong as wrong:
                yield Fault(line[0], *wrong.args)


def _record(number: int, text: str, keys: dict[str, list[str]]) -> Record | Fault:
    form = _object(text)
    (key,) = keys["source"]
    source = _value(form, key, text)
    if not isinstance(source, str):
        raise _of_another_type(key, "a text", source)
    targets = [t for key in keys["target"] for t in _texts(form, key, text)]
    behind = [f for key in keys["features"] for f in _texts(form, key, text)]
    if not source.strip():
        return empty(number, "source", excerpt(text))
    if not targets or not all(target.strip() for target in targets):
        return empty(number, "target", excerpt(text))
    if keys["features"] and (not behind or not all(f.strip() for f in behind)):
        return empty(number, "features", excerpt(text))
    fault = odd(number, (source, *targets, *behind))
    if fault is not None:
        return fault
    if behind:
        source = f"{source}\t{';'.join(behind)}"
    return Record(number, source, tuple(targets))


def _keys_once(entries: list[tuple[str, Any]]) -> dict[str, Any]:
    # Python's reader keeps the last of several, which is a guess.
    form = dict(entries)
    if len(form) < len(entries):
        names = [name for name, _ in entries]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Wrong(
            "json",
            f"the key {twice!r} is there more than once",
            "each key once; several references are a list",
            f"keys {', '.join(map(repr, names))}",
            "leave all but one out",
        )
    return form


def _object(text: str) -> dict[str, Any]:
    try:
        form = json.loads(text, object_pairs_hook=_keys_once)
    except (ValueError, RecursionError) as error:
        what = (
            "a JSON object is split over lines" if text.strip() in "[{" else "this is no JSON"
        )
        remedy = "write one object a line, for example with `jq -c .[]`"
        expected = '{"source": text, "target": text}'
        raise _Wrong("json", what, expected, f"{error}: {excerpt(text)}", remedy) from error
    if not isinstance(form, dict):
        raise _Wrong(
            "json",
            "this is no JSON object",
            '{"source": text, "target": text}',
            excerpt(text),
            "write one object a line, for example with `jq -c .[]`"
            if isinstance(form, list)
            else "write one object a line",
        )
    return form


def _value(form: dict[str, Any], key: str, text: str) -> Any:
    if key not in form:
        raise _Wrong(
            "key",
            f"there is no key {key!r}",
            f"an object with {key!r}",
            f"the keys {', '.join(map(repr, form))[:200]}" if form else excerpt(text),
            "add it, take the line out, or choose another key",
        )
    return form[key]


def _texts(form: dict[str, Any], key: str, text: str) -> list[str]:
    value = _value(form, key, text)
    texts = value if isinstance(value, list) else [value]
    wrong = next((one for one in texts if not isinstance(one, str)), None)
    if wrong is not None or None in texts:
        raise _of_another_type(key, "a text or a list of texts", value)
    return texts


def _of_another_type(key: str, expected: str, value: Any) -> _Wrong:
    return _Wrong(
        "type",
        f"{key!r} has the wrong type",
        expected,
        excerpt(json.dumps(value, ensure_ascii=False)),
        "put texts in quotes; leave out what is null",
    )
