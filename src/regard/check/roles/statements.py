"""Shapes that the author wrote down: in docstrings, comments, annotations and unpackings.

``q, k: (batch, heads, T, d)``, ``# memory = [src len, batch size, 2 * enc_size]``,
``Float[Tensor, "batch T d"]`` and ``b, n, _ = x.shape`` all say which axes an argument has.
A shape is kept as the author's own words; :mod:`regard.check.roles.layouts` reads them.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from regard.check.roles.reading import Reading
from regard.check.roles.words import axis_of

__all__ = ["Shape", "shapes"]

_TUPLE = re.compile(r"[(\[]([^()\[\]{}]*(?:\([^()\[\]]*\)[^()\[\]{}]*)*)[)\]]")
_NAME = re.compile(r"[A-Za-z_]\w*")
_EVERY = re.compile(
    r"\b(all (the )?(inputs|tensors|arguments)|every (tensor|input|argument)|inputs are|"
    r"tensors|self-attention (on|over)|on|pixels of an?|both inputs)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"""['"]([^'"]+)['"]""")


@dataclass(frozen=True)
class Shape:
    """Axes of an argument in the author's words.

    ``name`` is empty where the author speaks of all arguments. ``firm`` shapes are
    statements (a docstring, a comment, an annotation); an unpacking in the code is evidence.
    """

    name: str
    words: tuple[str, ...]
    firm: bool
    where: str


def shapes(reading: Reading) -> tuple[Shape, ...]:
    """Every shape that the target's text states for its arguments, best first."""
    found = [*_annotated(reading), *_written(reading), *_passed(reading), *_unpacked(reading)]
    return tuple(dict.fromkeys(found))


def _annotated(reading: Reading) -> Iterator[Shape]:
    for parameter in reading.parameters:
        text = parameter.annotation
        if "[" not in text:
            continue
        quoted = _QUOTED.findall(text)
        words: tuple[str, ...] = ()
        if len(quoted) == 1:
            words = tuple(w for w in quoted[0].split() if w != "...")
        elif len(quoted) > 1:
            words = tuple(quoted)
        words = tuple(re.sub(r"^[#*?]+|:.*$", "", w) for w in words)
        if words and all(words):
            yield Shape(parameter.name, words, True, "annotation")


def _written(reading: Reading) -> Iterator[Shape]:
    names = {p.name for p in reading.parameters}
    local = {n for n in reading.identifiers if n not in names}
    for text in reading.docs:
        yield from _in_text(text, names, local, "docstring")
    for text in reading.opening:
        yield from _in_text(text, names, local, "comment")
    for text in reading.comments:
        # Further down an argument's name may mean what has become of it.
        for shape in _in_text(text, names, local, "comment"):
            start = rf"(^|[,;.]|\band\b)\s*[`*]*(shape of )?{shape.name}[`*]*"
            if re.search(rf"{start}\s*(:|=|is|are|has|\.|of)", text):
                yield shape
    for name, text in reading.beside.items():
        for match in _TUPLE.finditer(text):
            words = _axis_words(match.group(1))
            if words is not None:
                yield Shape(name, words, True, "comment")
                break


def _passed(reading: Reading) -> Iterator[Shape]:
    """Shapes that a helper of the file states for what the target passes on to it as it is."""
    if reading.call is None:
        return
    names = {p.name for p in reading.parameters}
    helpers = {n.name: n for n in reading.reach if isinstance(n, ast.FunctionDef)}
    for node in ast.walk(reading.call):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        helper = helpers.get(node.func.id)
        if helper is None or helper is reading.call:
            continue
        text = ast.get_docstring(helper) or ""
        own = [a.arg for a in helper.args.args]
        said = {s.name: s.words for s in _in_text(text, set(own), set(), "docstring")}
        start = _TUPLE.match(text)
        if start is not None and own:
            words = _axis_words(start.group(1))
            if words is not None:
                said.setdefault(own[0], words)
        for given, parameter in zip(node.args, own, strict=False):
            if isinstance(given, ast.Name) and given.id in names and parameter in said:
                yield Shape(given.id, said[parameter], True, f"docstring of {helper.name}")


def _in_text(  # noqa: PLR0912 - one a form of docstring
    text: str, names: set[str], local: set[str], where: str
) -> Iterator[Shape]:
    current: tuple[str, ...] = ()  # the argument that an indented paragraph describes
    returning = False
    for line in text.splitlines():
        head = re.match(r"\s*[-*]?\s*[`*]*([\w, `*]+?)[`*]*\s*(?:\([^)]*\))?\s*:", line)
        if head is not None:
            said = _mentioned(head.group(1), names)
            if said:
                current, returning = said, False
            elif re.match(r"\s*(returns?|outputs?|yields)\b", line, re.IGNORECASE):
                current, returning = (), True
        if re.match(r"\s*(returns?|yields)\s*$", line, re.IGNORECASE):
            current, returning = (), True
        if re.match(r"\s*(args|arguments|parameters|inputs)\s*:?\s*$", line, re.IGNORECASE):
            current, returning = (), False
        if returning:
            continue
        end = 0
        for match in _TUPLE.finditer(line):
            words = _axis_words(match.group(1))
            before = line[end : match.start()]
            if words is None:
                continue
            end = match.end()
            if re.search(r"->\s*[`*]*$|\breturn", before, re.IGNORECASE):
                continue
            sentence = re.split(r"[;:.](?=\s+\w+[^;:.]*[;:])|;", before)[-1]
            said = _mentioned(sentence, names)
            if said:
                for name in _owners(sentence, said):
                    yield Shape(name, words, True, where)
            elif _foreign(sentence, names, local):
                continue
            elif current and where == "docstring":
                for name in current:
                    yield Shape(name, words, True, where)
            elif _EVERY.search(sentence) and where == "docstring":
                yield Shape("", words, True, where)


def _axis_words(inside: str) -> tuple[str, ...] | None:
    """The items of a bracket if they read like axes, at least one of them known."""
    items = [i.strip().strip("`'\" ") for i in re.split(r"\s*[,x\u00d7]\s+|,", inside)]
    items = [i for i in items if i]
    if not items or len(items) > 6:
        return None
    if not all(re.fullmatch(r"[\w\s*+/()-]+", i) and len(i) <= 40 for i in items):
        return None
    known = [axis_of(_core(i)) for i in items]
    plain = sum(1 for k in known if k is not None)
    if plain == 0 or (len(items) == 1 and not re.fullmatch(r"[A-Za-z_]\w*,?", inside.strip())):
        return None
    if len(items) == 1 and not inside.strip().endswith(","):
        return None  # "(batch)" alone is prose more often than a shape
    if all(re.fullmatch(r"\d+", i) for i in items):
        return None  # arguments of a call, as in transpose(1, 2)
    prose = any(len(re.findall(r"[A-Za-z_]\w*", i)) > 4 for i in items)
    return None if prose or plain * 2 < len(items) else tuple(items)


def _core(item: str) -> str:
    """The name inside an expression: ``2 * enc_size`` speaks of enc_size."""
    if re.fullmatch(r"\d+", item):
        return "batch"  # a literal axis is as good as a known one
    names = re.findall(r"[A-Za-z_][\w ]*", item)
    return names[0].strip() if names else item


def _mentioned(text: str, names: set[str]) -> tuple[str, ...]:
    found = [w for w in _NAME.findall(text) if w in names]
    return tuple(dict.fromkeys(found))


def _owners(sentence: str, said: tuple[str, ...]) -> tuple[str, ...]:
    """Names that one shape belongs to: a list ("k, v:"), or the last name before it."""
    listed = re.search(
        r"([\w`*]+(?:\s*(?:,|and|&|/)\s*[\w`*]+)*)\s*(?::|=|is|are|has)?\s*$", sentence
    )
    if listed is not None:
        names = tuple(n for n in said if re.search(rf"\b{n}\b", listed.group(1)))
        if names:
            return names
    if re.search(rf"\b{said[0]}\b.*[:=]", sentence):
        before = re.split(":" if ":" in sentence else "=", sentence, maxsplit=1)[0]
        names = tuple(n for n in said if re.search(rf"\b{n}\b", before))
        if names:
            return names
    return said[-1:] if len(said) > 1 else said


def _foreign(sentence: str, names: set[str], local: set[str]) -> bool:
    """Whether a shape belongs to a variable of the code that is no argument."""
    last = re.search(r"([A-Za-z_]\w*)[`*]*\s*(?:[:=]|is|are|stay)?\s*$", sentence)
    if last is None or last.group(1) in names:
        return False
    listed = re.findall(r"\b([a-z]|[a-z]+_\w+)\b", sentence)
    return last.group(1) in local or any(w in local and w != "a" for w in listed)


def _unpacked(reading: Reading) -> Iterator[Shape]:
    names = {p.name for p in reading.parameters}
    if reading.call is None:
        return
    sized: dict[str, dict[int, str]] = {}
    for node in ast.walk(reading.call):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple):
            words = tuple(t.id if isinstance(t, ast.Name) else "*" for t in target.elts)
            owner = _shape_of(value)
            if owner in names and "*" not in words:
                yield Shape(str(owner), words, False, "unpacking")
            elif isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
                for t, v in zip(target.elts, value.elts, strict=True):
                    _note_size(t, v, names, sized)
        else:
            _note_size(target, value, names, sized)
    for name, known in sized.items():
        for index, word in known.items():
            yield Shape(name, (f"@{index}", word), False, "size")


def _note_size(
    target: ast.expr, value: ast.expr, names: set[str], sized: dict[str, dict[int, str]]
) -> None:
    found = _size_at(value)
    if found is not None and isinstance(target, ast.Name) and found[0] in names:
        sized.setdefault(found[0], {})[found[1]] = target.id


def _shape_of(node: ast.expr) -> str | None:
    """Name whose whole shape an expression is: ``x.shape``, ``x.size()``."""
    if isinstance(node, ast.Call) and not node.args and not node.keywords:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "size":
            node = node.func.value
            return node.id if isinstance(node, ast.Name) else None
        return None
    if isinstance(node, ast.Attribute) and node.attr == "shape":
        return node.value.id if isinstance(node.value, ast.Name) else None
    return None


def _size_at(node: ast.expr) -> tuple[str, int] | None:
    """Name and axis of ``x.size(1)`` or ``x.shape[1]``."""
    index: ast.expr | None = None
    owner: str | None = None
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "size"
        and len(node.args) == 1
    ):
        index = node.args[0]
        owner = node.func.value.id if isinstance(node.func.value, ast.Name) else None
    elif isinstance(node, ast.Subscript):
        index = node.slice
        owner = _shape_of(node.value)
    if index is None or owner is None:
        return None
    try:
        at = ast.literal_eval(index)
    except ValueError:
        return None
    return (owner, at) if isinstance(at, int) else None
