"""Slips of copying: a call, a slice or a mask that was taken over and not adapted."""

import ast
import itertools
import re
from collections.abc import Iterator

from regard.check.repair.families.axes import argument
from regard.check.repair.families.base import Change, change, family
from regard.check.repair.families.masking import masky
from regard.check.repair.program import Program

_KEEPS = ("keep", "keep_int", "keep_uint8", "keep_float01")
_DROPS = ("drop", "drop_int", "drop_float01")


@family("copied")
def idle_names(program: Program) -> Iterator[Change | None]:
    """Two names that nothing reads, for two arguments of one call that is written twice."""
    for found in program.operations():
        function = program.function(found.node)
        given = [a for a in found.node.args if isinstance(a, ast.Name)]
        if function is None or len(given) < 2:
            continue
        idle = [v for v in program.scope(found.node) if _is_idle(v.text, function)]
        for one, two in itertools.combinations(given, 2):
            for first, second in itertools.permutations(idle, 2):
                if _ends_alike(first.text, one.id) and _ends_alike(second.text, two.id):
                    spans = (program.put(one, first.text), program.put(two, second.text))
                    yield change(1.0, *spans)


def _is_idle(name: str, function: ast.AST) -> bool:
    return name.isidentifier() and not any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        for n in ast.walk(function)
    )


def _ends_alike(name: str, other: str) -> bool:
    """Whether one name is the other with a word before it: ``ip_key`` and ``key``.

    >>> _ends_alike("ip_key", "key"), _ends_alike("monkey", "key")
    (True, False)
    """
    return name != other and name.rpartition("_")[2] == other.rpartition("_")[2]


@family("copied")
def sibling_slices(program: Program) -> Iterator[Change | None]:
    """The slice that the statement before has, as for the queries and keys of a head."""
    slices: dict[ast.AST, dict[str, ast.Slice]] = {}
    for node in program.loads():
        function = program.function(node)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and function:
            slices.setdefault(function, {})[program.text(node.slice)] = node.slice
    for node in program.loads():
        function = program.function(node)
        if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
            continue
        for text in slices.get(function, {}) if function is not None else ():
            if text != program.text(node.slice):
                yield change(1.1, program.put(node, f"{program.at(node.value)}[{text}]"))


@family("copied")
def memory_masks(program: Program) -> Iterator[Change | None]:
    """Tell a library's decoder layer which keys of its memory are padding."""
    if not re.search(r"Transformer(Decoder(Layer)?)?\(", program.source):
        return
    for found in program.operations():
        if found.form != "module" or len(found.node.args) < 2:
            continue
        if found.keyword("memory_key_padding_mask") is not None:
            continue
        for variable in program.scope(found.node):
            if variable.kind == "mask" or "mask" in variable.text:
                for text in (variable.text, f"~{variable.text}"):
                    added = argument(program, found, f"memory_key_padding_mask={text}")
                    yield change(1.3 + 0.1 * text.startswith("~"), added)


@family("copied")
def raw_masks(program: Program) -> Iterator[Change | None]:
    """A mask of zeros and ones that is added as it is: a penalty where it forbids."""
    kinds = set(program.contract.kinds.values())
    for node in program.loads():
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
            continue
        if not masky(program, node.right) or masky(program, node.left):
            continue
        mask = program.at(node.right, 11)
        penalties = [f"(1.0 - {mask}) * -10000.0"] if kinds & {*_KEEPS} else []
        penalties += [f"{mask} * -10000.0"] if kinds & {*_DROPS} else []
        for text in penalties:
            yield change(1.1, program.put(node.right, text))
