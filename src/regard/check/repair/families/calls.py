"""Arguments that a call leaves out: a state, a layout, an option, a default."""

import ast
from collections.abc import Iterator

from regard.check.repair.families.axes import argument
from regard.check.repair.families.base import Change, change, family, literal, turned
from regard.check.repair.program import Operation, Program, Variable

_LAYOUT = ("MultiheadAttention", "GRU", "LSTM", "RNN", "TransformerEncoderLayer")
_RECURRENT = ("GRU(", "LSTM(", "RNN(", "GRUCell(", "LSTMCell(", "RNNCell(")
_ATTENTION = ("scaled_dot_product_attention",)


@family("layout")
def layouts(program: Program) -> Iterator[Change | None]:
    """Say which axis of a library layer is the batch."""
    for node in ast.walk(program.tree):
        found = program.operation(node)
        if found is None or found.name not in _LAYOUT:
            continue
        named = found.keyword("batch_first")
        if named is None:
            yield change(0.9, argument(program, found, "batch_first=True"))
        elif turned(named.value) is not None:
            yield change(1.0, program.put(named.value, str(turned(named.value))))


@family("default")
def defaults(program: Program) -> Iterator[Change | None]:
    """Pass an argument that the file's own function has a default for, and that is left out."""
    for found in program.operations():
        function = program.definition(found)
        names = program.parameters(found)
        if function is None or not names:
            continue
        given = len(found.node.args)
        passed = {k.arg for k in found.node.keywords}
        rest = list(zip(reversed(names), reversed(function.args.defaults), strict=False))
        rest += [
            (a.arg, d)
            for a, d in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
            if d is not None
        ]
        for name, default in rest:
            if name in passed or name in names[:given]:
                continue
            for text, cost in _values(program, found, name, default):
                yield change(cost, argument(program, found, f"{name}={text}"))


def _values(
    program: Program, found: Operation, name: str, default: ast.expr
) -> Iterator[tuple[str, float]]:
    value = literal(default)
    if isinstance(value, int):
        for other in (1, 0, -1, 2, -2):
            if other != value and name in ("axis", "dim"):
                yield str(other), 1.0
    other_way = turned(default)
    if other_way is not None:
        yield other_way, 1.1
    for variable in program.scope(found.node):
        same = variable.text.removeprefix("self.") == name
        number = isinstance(value, int | float)
        if number and variable.kind not in ("int", "real"):
            continue
        if not number and not (variable.seen is None or variable.seen.is_tensor):
            continue
        yield variable.text, 1.0 if same else 1.6


@family("state")
def states(program: Program) -> Iterator[Change | None]:
    """Hand a recurrent layer the state it should go on from."""
    for found in program.operations():
        if found.form != "module" or not found.node.args or len(found.node.args) > 1:
            continue
        made = next((t for t in program.source.splitlines() if f"{found.name} = " in t), "")
        if not any(kind in made for kind in _RECURRENT):
            continue
        rank = 2 if "Cell(" in made else 3
        for variable in program.scope(found.node):
            for text, cost in _as_state(variable, rank):
                yield change(cost, argument(program, found, text))


def _as_state(variable: Variable, rank: int) -> Iterator[tuple[str, float]]:
    seen = variable.seen
    if seen is None or variable.text.startswith("self."):
        return
    near = 0.0 if "state" in variable.text or variable.text.startswith("h") else 0.4
    if seen.kind == "tuple" or seen.rank == rank:
        yield variable.text, 1.0 + near
    elif seen.kind == "float" and seen.rank == rank - 1:
        yield f"{variable.text}[None]", 1.1 + near


@family("option")
def options(program: Program) -> Iterator[Change | None]:
    """Options of a library's attention: causal, grouped heads, weights of every head."""
    for found in program.operations(*_ATTENTION):
        for name in ("is_causal", "enable_gqa"):
            if found.keyword(name) is None and found.keyword("attn_mask") is None:
                yield change(1.3, argument(program, found, f"{name}=True"))
    for found in program.operations():
        if found.keyword("need_weights", "key_padding_mask", "attn_mask") or (
            found.form == "module" and len(found.node.args) == 3
        ):
            if found.keyword("average_attn_weights") is None:
                text = "average_attn_weights=False"
                yield change(1.7, argument(program, found, text))
            for name in ("key_padding_mask", "attn_mask"):
                if found.keyword(name) is not None:
                    continue
                for variable in program.scope(found.node):
                    if variable.kind in ("mask",) or "mask" in variable.text:
                        yield change(1.5, argument(program, found, f"{name}={variable.text}"))
                        yield change(1.6, argument(program, found, f"{name}=~{variable.text}"))


@family("commute")
def commutes(program: Program) -> Iterator[Change | None]:
    """A method before the call instead of after it: ``f(x, n).t()`` as ``f(x.t(), n)``."""
    for node in program.loads():
        outer = program.operation(node)
        if outer is None or outer.form != "method":
            continue
        inner = program.operation(outer.operand) if outer.operand is not None else None
        if inner is None or inner.form == "method" or inner.operand is None:
            continue
        func = outer.node.func
        assert outer.operand is not None
        tail = program.source[program.span(outer.operand)[1] : program.span(node)[1]]
        if not tail.startswith("."):
            continue
        del func
        start, end = program.span(outer.operand)
        a, b = program.span(inner.operand)
        moved = program.source[start:a] + program.at(inner.operand) + tail
        yield change(1.3, program.put(node, moved + program.source[b:end]))
    for node in program.loads():
        outer = program.operation(node)
        if outer is None or outer.form == "method" or outer.operand is None:
            continue
        inner = program.operation(outer.operand)
        if inner is None or inner.form != "method" or inner.operand is None:
            continue
        start, end = program.span(node)
        a, b = program.span(outer.operand)
        tail = program.source[program.span(inner.operand)[1] : b]
        if not tail.startswith("."):
            continue
        whole = program.source[start:a] + program.text(inner.operand)
        yield change(1.5, program.put(node, whole + program.source[b:end] + tail))
