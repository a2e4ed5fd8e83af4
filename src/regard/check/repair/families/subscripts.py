"""Subscripts of ``einsum``: which axes are joined, and in which order they come out."""

import ast
import itertools
import re
import string
from collections.abc import Iterator

from regard.check.repair.families.base import Change, change, family, is_constant
from regard.check.repair.program import Operation, Program

_MOST = 160


@family("einsum")
def subscripts(program: Program) -> Iterator[Change | None]:
    """Give an axis another letter, or the result another order of axes."""
    for found in program.operations("einsum"):
        node = found.operand
        if not is_constant(node, str) or not isinstance(node, ast.Constant):
            continue
        text = str(node.value).replace(" ", "")
        if "->" not in text:
            continue
        quote = program.text(node)[0]
        shapes = [_shape(program, a) for a in found.args]
        seen = set()
        for other, cost in _others(text):
            if other == text or other in seen or not _possible(other, shapes):
                continue
            seen.add(other)
            if len(seen) > _MOST:
                break
            yield change(cost, program.put(node, f"{quote}{other}{quote}"))
        yield from _operands(program, found)


def _operands(program: Program, found: Operation) -> Iterator[Change | None]:
    del program, found
    yield from ()


def _shape(program: Program, node: ast.expr) -> tuple[int, ...] | None:
    seen = program.seen(node)
    return seen.shape if seen is not None and seen.is_tensor else None


def _others(text: str) -> Iterator[tuple[str, float]]:
    left, _, right = text.partition("->")
    places = [i for i, c in enumerate(text) if c.isalpha()]
    letters = sorted({text[i] for i in places})
    fresh = next(c for c in (*"e", *string.ascii_lowercase) if c not in letters)
    for a, b in itertools.combinations(range(len(right)), 2):
        if right[a].isalpha() and right[b].isalpha():
            swapped = list(right)
            swapped[a], swapped[b] = swapped[b], swapped[a]
            yield f"{left}->{''.join(swapped)}", 1.3
    for i in places:
        for letter in letters:
            yield text[:i] + letter + text[i + 1 :], 1.2
    # Axes of one letter that are not one axis.
    for letter in letters:
        where = [i for i in places if text[i] == letter]
        for count in range(1, len(where)):
            for some in itertools.combinations(where, count):
                yield _put(text, some, fresh), 1.3
    # Two letters exchanged within one operand.
    for operand in re.finditer(r"[a-zA-Z]+", text):
        for a, b in itertools.combinations(range(operand.start(), operand.end()), 2):
            chars = list(text)
            chars[a], chars[b] = chars[b], chars[a]
            yield "".join(chars), 1.4
    for a, b in itertools.combinations(places, 2):
        for letter in letters:
            if text[a] != letter and text[b] != letter and text[a] == text[b]:
                yield _put(text, (a, b), letter), 1.6


def _put(text: str, places: tuple[int, ...], letter: str) -> str:
    return "".join(letter if i in places else c for i, c in enumerate(text))


def _possible(text: str, shapes: list[tuple[int, ...] | None]) -> bool:
    """Whether every letter can have one size, and the result only letters that exist."""
    left, _, right = text.partition("->")
    operands = left.split(",")
    if len(set(right.replace(".", ""))) != len(right.replace(".", "")):
        return False
    if not set(right) <= set(left):
        return False
    sizes: dict[str, int] = {}
    for letters, shape in zip(operands, shapes, strict=False):
        if shape is None:
            continue
        if "..." in letters:
            head, _, tail = letters.partition("...")
            if len(head) + len(tail) > len(shape):
                return False
            pairs = [*zip(head, shape, strict=False)]
            pairs += zip(reversed(tail), reversed(shape), strict=False)
        else:
            if len(letters) != len(shape):
                return False
            pairs = list(zip(letters, shape, strict=True))
        for letter, size in pairs:
            if sizes.setdefault(letter, size) != size:
                return False
    return True


@family("pattern")
def patterns(program: Program) -> Iterator[Change | None]:
    """Exchange two names in a pattern of axes such as ``b n (h d) -> b h n d``."""
    for node in program.nodes:
        if not is_constant(node, str) or not isinstance(node, ast.Constant):
            continue
        text = str(node.value)
        if "->" not in text or " " not in text.strip():
            continue
        if not re.fullmatch(r"[\w\s().\->,]+", text):
            continue
        words = list(re.finditer(r"[A-Za-z_]\w*", text))
        quote = program.text(node)[0]
        for a, b in itertools.combinations(words, 2):
            same_side = text.find("->", a.end(), b.start()) < 0
            if a.group() == b.group() or not same_side:
                continue
            other = text[: a.start()] + b.group() + text[a.end() : b.start()] + a.group()
            other += text[b.end() :]
            yield change(1.3, program.put(node, f"{quote}{other}{quote}"))
