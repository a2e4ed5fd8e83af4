"""Files of inputs: JSON lines, pairs with a tab, texts."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.audit.inputs import Input, steps_of
from regard.errors import InputError, explain
from regard.files import unreadable

__all__ = ["Cut", "Split", "read_inputs"]

_SIDES = ("source", "target")

Split = Callable[[str, str], Sequence[str]]
"""Takes "source" or "target" and a text, returns its tokens as the model has them."""
Cut = Callable[..., Sequence[Input]]
"""Takes texts or lists of words, and ``gold=``, of each the marked words; returns an input for
each, with the model's own tokens."""


def read_inputs(
    path: str | Path, split: Split | None = None, *, cut: Cut | None = None
) -> list[Input]:
    """Read inputs from a file, one a line.

    Parameters
    ----------
    path : str or path
        UTF-8; the name's end decides, in upper or lower case.

        ``*.jsonl``, ``*.ndjson``, ``*.json``: objects with ``tokens`` (a list) or ``text``
        (split at spaces), and if they like ``gold`` (positions from 0), ``label``, ``before``,
        ``fixed``; or a pair of a sequence-to-sequence model as ``source`` and ``target``
        (lists, or texts), and if they like ``links`` ([[source, target], ...], from 0), which
        becomes one input a step.

        ``*.tsv``: such pairs, ``source<TAB>target``.

        Any other file: a line is a text, split at spaces.
    split : callable, optional
        Cuts texts of ``source`` and ``target`` as the model does; a case's own ``split``. With
        it all lines have to be pairs, since the model writes. Default: at spaces.
    cut : callable, optional
        Cuts other texts as the model does; a case's own ``inputs``. Default: at spaces.

    Returns
    -------
    inputs : list of Input
        Not empty.

    Raises
    ------
    InputError
        The file cannot be read, a line is no such object, or there is no line.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(
            unreadable(
                path, error, expected="a file of inputs", missing="check the path of --data"
            )
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            explain(f"{path}: the file is no text", expected="UTF-8", got=f"byte {error.start}")
        ) from error
    read = _READERS.get(Path(path).suffix.lower(), _read_text)
    ways = _Ways(split, cut)
    found: list[Input] = []
    # At line feeds alone: JSON may hold what else Unicode calls the end of a line.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            found += read(line.removesuffix("\r"), f"{path}, line {number}", ways)
    if not found:
        raise InputError(
            explain(f"{path}: no inputs", expected="one input a line", got="no line with text")
        )
    return found


@dataclass(frozen=True)
class _Ways:
    """How the model cuts texts."""

    split: Split | None
    cut: Cut | None

    def input(
        self, given: Any, where: str, name: str, gold: frozenset[int] | None = None
    ) -> Input:
        """Return the input of a text or of a list of tokens, with the marked ones of a list."""
        if isinstance(given, str) and self.split is not None:
            raise _refused(
                where, "source and target, since the model writes", f"a text: {given[:60]}"
            )
        tokens = _tokens(given, where, name)
        if self.cut is None:
            return Input(tokens, gold=gold)
        marked = None if gold is None else [sorted(gold)]
        text = given if isinstance(given, str) else list(tokens)
        (found,) = self.cut([text], gold=marked)
        return found


def _read_object(line: str, where: str, ways: _Ways) -> list[Input]:
    try:
        form = json.loads(line)
    except ValueError as error:
        raise _refused(where, "a JSON object", str(error)) from error
    if not isinstance(form, dict):
        raise _refused(where, "a JSON object", type(form).__name__)
    if all(side in form for side in _SIDES):
        return _steps(form, where, ways.split)
    given = form.get("tokens", form.get("text"))
    if given is None:
        raise _refused(
            where, "`tokens` or `text`, or `source` and `target`", ", ".join(form) or "nothing"
        )
    name = "tokens" if "tokens" in form else "text"
    marks = [mark for mark in ("gold", "fixed") if form.get(mark) is not None]
    if ways.cut is not None and ((isinstance(given, str) and marks) or "fixed" in marks):
        raise _refused(
            where,
            "gold beside `tokens`: the model cuts texts and fixes tokens in its own way",
            f"{' and '.join(marks)} beside `{name}`",
        )
    length = len(_tokens(given, where, name))
    places = {mark: _places(form[mark], where, mark, length) for mark in marks}
    one = ways.input(given, where, name, places.get("gold"))
    before, label = form.get("before"), form.get("label")
    return [
        replace(
            one,
            before=None if before is None else _tokens(before, where, "before", empty=True),
            fixed=places.get("fixed", one.fixed),
            label=None if label is None else str(label),
        )
    ]


def _read_pair(line: str, where: str, ways: _Ways) -> list[Input]:
    columns = line.split("\t")
    if len(columns) != 2 or not all(map(str.strip, columns)):
        raise InputError(
            explain(
                f"{where}: this is no pair",
                expected="source<TAB>target, both with text",
                got=f"{len(columns)} column{'s' * (len(columns) > 1)}: {line[:60]}",
                help="links, labels and marked tokens go into a *.jsonl file; a file of texts "
                "has another name, as *.txt",
            )
        )
    return _steps(dict(zip(_SIDES, columns, strict=True)), where, ways.split)


def _read_text(line: str, where: str, ways: _Ways) -> list[Input]:
    return [ways.input(line, where, "the line")]


_READERS: dict[str, Callable[[str, str, _Ways], list[Input]]] = {
    ".jsonl": _read_object,
    ".ndjson": _read_object,
    ".json": _read_object,
    ".tsv": _read_pair,
}


def _steps(form: dict[str, Any], where: str, split: Split | None) -> list[Input]:
    if split is not None:
        texts = {side: form[side] for side in _SIDES if isinstance(form[side], str)}
        form |= {side: list(split(side, text)) for side, text in texts.items()}
    source, target = (_tokens(form[side], where, side) for side in _SIDES)
    return steps_of(source, target, _links(form.get("links"), where, source, target))


def _tokens(given: Any, where: str, name: str, *, empty: bool = False) -> tuple[str, ...]:
    tokens = given.split() if isinstance(given, str) else given
    listed = isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)
    if not listed or not (tokens or empty):
        raise _refused(where, f"{name}: a text or a list of tokens", json.dumps(given)[:80])
    return tuple(tokens)


def _places(given: Any, where: str, name: str, length: int) -> frozenset[int]:
    fits = isinstance(given, list) and all(
        isinstance(i, int) and not isinstance(i, bool) and 0 <= i < length for i in given
    )
    if not fits:
        raise _refused(
            where, f"{name}: positions from 0 to {length - 1}", json.dumps(given)[:80]
        )
    return frozenset(given)


def _links(
    given: Any, where: str, source: Sequence[str], target: Sequence[str]
) -> list[tuple[int, int]] | None:
    if given is None:
        return None
    links = []
    for link in given if isinstance(given, list) else [given]:
        pair = isinstance(link, list) and len(link) == 2
        if not pair or not all(isinstance(i, int) for i in link):
            raise _refused(where, "links: pairs [source, target]", json.dumps(link)[:80])
        if not (0 <= link[0] < len(source) and 0 <= link[1] < len(target)):
            raise _refused(
                where,
                f"links: source below {len(source)}, target below {len(target)}, from 0",
                json.dumps(link),
            )
        links.append((link[0], link[1]))
    return links


def _refused(where: str, expected: str, got: str) -> InputError:
    return InputError(explain(f"{where}: this is no input", expected=expected, got=got))
