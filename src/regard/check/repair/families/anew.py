"""What is made once and should be made each time: one module for every head, kept results."""

import ast
import textwrap
from collections.abc import Iterator

from regard.check.repair.families.base import Change, change, family
from regard.check.repair.program import Program


@family("anew")
def modules(program: Program) -> Iterator[Change | None]:
    """A list of modules of their own, where one module is listed several times."""
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
            continue
        listed, times = node.left, node.right
        if isinstance(times, ast.List):
            listed, times = times, listed
        if not isinstance(listed, ast.List) or len(listed.elts) != 1:
            continue
        made = listed.elts[0]
        if program.function(node) is not None and isinstance(made, ast.Call):
            text = f"[{program.text(made)} for _ in range({program.text(times)})]"
            yield change(0.9, program.put(node, text))


@family("anew")
def kept(program: Program) -> Iterator[Change | None]:
    """Compute at every call what is computed where nothing is kept yet."""
    for node in ast.walk(program.tree):
        if program.function(node) is None or not isinstance(node, ast.If | ast.IfExp):
            continue
        test = node.test
        if not isinstance(test, ast.Compare) or not isinstance(
            test.comparators[0], ast.Constant
        ):
            continue
        if test.comparators[0].value is not None or len(test.ops) != 1:
            continue
        is_none = isinstance(test.ops[0], ast.Is)
        if isinstance(node, ast.IfExp):
            made, old = (node.body, node.orelse) if is_none else (node.orelse, node.body)
            if program.text(old) == program.text(test.left):
                yield change(1.0, program.put(node, program.text(made)))
        elif is_none and not node.orelse and _is_own(test.left):
            start, end = program.span(node)
            line = program.offset(node.body[0].lineno, 0)
            body = textwrap.dedent(program.source[line:end])
            inner = "\n".join(
                f"{' ' * node.col_offset}{t}" if t and i else t
                for i, t in enumerate(body.split("\n"))
            )
            yield change(1.2, (start, end, inner))


def _is_own(node: ast.expr) -> bool:
    """Whether a name is one that outlives the call: an attribute."""
    return isinstance(node, ast.Attribute)
