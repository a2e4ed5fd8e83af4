"""What an audit asks about: one input, and files of them."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.errors import InputError, explain
from regard.files import unreadable

__all__ = ["Input", "Split", "fingerprint", "read_inputs", "steps_of"]

_SIDES = ("source", "target")


@dataclass(frozen=True)
class Input:
    """One thing that the model answers, and whose weights would be shown.

    Of a sequence-to-sequence model it is one output step: the source, and what had been
    written before.

    Parameters
    ----------
    tokens : tuple of str, length T_enc
        What the weights lie on, in order.
    before : tuple of str, optional
        The target's tokens before this step; None for a model that writes nothing.
    fixed : frozenset of int
        Positions that no erasure touches, as an encoder's own [CLS] and [SEP].
    gold : frozenset of int, optional
        Positions that a person marked as the ones that matter.
    label : str, optional
        The right answer, for whoever counts accuracies.
    """

    tokens: tuple[str, ...]
    before: tuple[str, ...] | None = None
    fixed: frozenset[int] = frozenset()
    gold: frozenset[int] | None = None
    label: str | None = None

    @property
    def free(self) -> tuple[int, ...]:
        """Positions that may be erased, in order."""
        return tuple(i for i in range(len(self.tokens)) if i not in self.fixed)

    def without(self, positions: Iterable[int]) -> "Input":
        """Return the input with these positions left out."""
        gone = set(positions)
        kept = [i for i in range(len(self.tokens)) if i not in gone]
        place = {old: new for new, old in enumerate(kept)}
        return replace(
            self,
            tokens=tuple(self.tokens[i] for i in kept),
            fixed=frozenset(place[i] for i in self.fixed if i in place),
            gold=None
            if self.gold is None
            else frozenset(place[i] for i in self.gold if i in place),
        )

    def with_tokens(self, tokens: Mapping[int, str]) -> "Input":
        """Return the input with other tokens in these places."""
        return replace(
            self, tokens=tuple(tokens.get(i, token) for i, token in enumerate(self.tokens))
        )


def steps_of(
    source: Sequence[str],
    target: Sequence[str],
    links: Iterable[tuple[int, int]] | None = None,
) -> list[Input]:
    """Return one input for each output step of a sequence pair, the target taken as written.

    Parameters
    ----------
    source, target : sequence of str
    links : iterable of (source position, target position), optional
        Gold links, from 0: each step's gold are the sources linked to it. A step without any
        link has none.
    """
    linked: dict[int, set[int]] = {}
    for s, t in links or ():
        linked.setdefault(t, set()).add(s)
    return [
        Input(
            tuple(source),
            before=tuple(target[:t]),
            gold=frozenset(linked[t]) if t in linked else None,
            label=target[t],
        )
        for t in range(len(target))
    ]


Split = Callable[[str, str], Sequence[str]]
"""Takes "source" or "target" and a text, returns its tokens as the model has them."""


def read_inputs(path: str | Path, split: Split | None = None) -> list[Input]:
    """Read inputs from a file, one a line.

    Parameters
    ----------
    path : str or path
        ``*.jsonl``: objects with ``tokens`` (a list) or ``text`` (split at spaces), and if they
        like ``gold`` (positions from 0), ``label``, ``before``, ``fixed``; or a pair of a
        sequence-to-sequence model as ``source`` and ``target`` (lists, or texts), and if they
        like ``links`` ([[source, target], ...], from 0), which becomes one input a step. Any
        other file: a line is a text, split at spaces.
    split : callable, optional
        Cuts texts of ``source`` and ``target`` as the model does; a case's own ``split``.
        Default: at spaces.

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
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            unreadable(
                path, error, expected="a file of inputs", missing="name a file with --data"
            )
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(
            explain(f"{path}: the file is no text", expected="UTF-8", got=f"byte {error.start}")
        ) from error
    objects = str(path).endswith((".jsonl", ".json", ".ndjson"))
    found: list[Input] = []
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            where = f"{path}, line {number}"
            found += _read_object(line, where, split) if objects else [_of_tokens(line, where)]
    if not found:
        raise InputError(
            explain(f"{path}: no inputs", expected="one input a line", got="no line with text")
        )
    return found


def fingerprint(inputs: Sequence[Input]) -> str:
    """Return a short name for the inputs: equal for equal ones, in the same order."""
    digest = hashlib.sha256()
    for one in inputs:
        gold = None if one.gold is None else sorted(one.gold)
        form = [one.tokens, one.before, sorted(one.fixed), gold, one.label]
        digest.update(json.dumps(form, ensure_ascii=True).encode())
    return digest.hexdigest()[:16]


def _read_object(line: str, where: str, split: Split | None) -> list[Input]:
    try:
        form = json.loads(line)
    except ValueError as error:
        raise _refused(where, "a JSON object", str(error)) from error
    if not isinstance(form, dict):
        raise _refused(where, "a JSON object", type(form).__name__)
    if all(side in form for side in _SIDES):
        if split is not None:
            texts = {side: form[side] for side in _SIDES if isinstance(form[side], str)}
            form |= {side: list(split(side, text)) for side, text in texts.items()}
        source, target = (_tokens(form[side], where, side) for side in _SIDES)
        return steps_of(source, target, _links(form.get("links"), where, source, target))
    given = form.get("tokens", form.get("text"))
    if given is None:
        raise _refused(
            where, "`tokens` or `text`, or `source` and `target`", ", ".join(form) or "nothing"
        )
    before = form.get("before")
    tokens = _tokens(given, where, "tokens" if "tokens" in form else "text")
    gold, fixed = (
        _places(form.get(name), where, name, len(tokens)) for name in ("gold", "fixed")
    )
    return [
        Input(
            tokens,
            before=None if before is None else _tokens(before, where, "before", empty=True),
            fixed=fixed or frozenset(),
            gold=gold,
            label=None if form.get("label") is None else str(form["label"]),
        )
    ]


def _of_tokens(line: str, where: str) -> Input:
    return Input(_tokens(line, where, "the line"))


def _tokens(given: Any, where: str, name: str, *, empty: bool = False) -> tuple[str, ...]:
    tokens = given.split() if isinstance(given, str) else given
    listed = isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)
    if not listed or not (tokens or empty):
        raise _refused(where, f"{name}: a text or a list of tokens", json.dumps(given)[:80])
    return tuple(tokens)


def _places(given: Any, where: str, name: str, length: int) -> frozenset[int] | None:
    if given is None:
        return None
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
