"""Another name that is in reach, of the same kind; the order of what stands in a row."""

import ast
import itertools
from collections.abc import Iterator

from regard.check.repair.families.arithmetic import performed
from regard.check.repair.families.base import Change, change, family
from regard.check.repair.observe import Seen
from regard.check.repair.program import Program, Variable

_TENSORS = ("float", "mask", "index")
_NUMBERS = ("int", "real")
_SISTERS = (
    ("tril", "triu"),
    ("zeros", "ones"),
    ("arange", "zeros", "ones"),
    ("zeros_like", "ones_like"),
    ("cos", "sin"),
    ("mean", "sum"),
    ("max", "min", "amax"),
    ("max", "sum"),
    ("norm", "sum"),
    ("all", "any"),
    ("logical_and", "logical_or"),
    ("argmax", "argmin"),
    ("log_softmax", "softmax"),
    ("cat", "stack"),
    ("concat", "stack"),
    ("concatenate", "stack"),
    ("tanh", "relu", "sigmoid", "silu", "gelu"),
    ("Tanh", "ReLU", "Sigmoid", "Identity"),
    ("roll", "flip"),
    ("tile", "repeat"),
    ("softmax", "softmin"),
    ("LogSoftmax", "Softmax"),
)


def fits(old: str, new: str) -> float | None:
    """Extra cost of a value of another kind in a place, None where it cannot stand there.

    >>> fits("float", "float"), fits("float", "mask"), fits("int", "module")
    (0.0, 0.6, None)
    """
    if not old or not new:
        return 0.5
    if old == new:
        return 0.0
    if old in _TENSORS and new in _TENSORS:
        return 0.6
    if old in _NUMBERS and new in _NUMBERS:
        return 0.3
    if {old, new} <= {"none", "int", "real", "float", "mask", "tuple", "bool"}:
        return 0.8
    return None


@family("name")
def names(program: Program) -> Iterator[Change | None]:
    """Replace a name or an attribute of ``self`` by another."""
    runs = program.observed.crash is None
    for node in program.loads():
        old = _name_of(program, node)
        if old is None:
            continue
        scope = program.scope(node)
        kind = next((v.kind for v in scope if v.text == old), "")
        seen = program.seen(node)
        rank = program.rank(node)
        for other in scope:
            if other.text == old:
                continue
            extra = fits(kind or (seen.kind if seen else ""), other.kind)
            if extra is None:
                continue
            if seen is not None and other.seen is not None and seen.is_tensor:
                extra += 0.4 * (other.seen.rank != rank)
                extra += 0.2 * (runs and other.seen.shape != seen.shape)
            if _alike(old, other.text):
                extra -= 0.1
            if _is_looked_up(program, node):
                extra += 0.8
            yield change(1.0 + extra, program.put(node, other.text))


def _name_of(program: Program, node: ast.expr) -> str | None:
    parent, place = program.parents[node]
    if isinstance(node, ast.Name):
        if isinstance(parent, ast.Call) and place == "func":
            return None
        if node.id in program.aliases or node.id in ("self", "super", "range", "float", "len"):
            return None
        return node.id
    if isinstance(node, ast.Attribute) and program.text(node.value) == "self":
        return program.text(node)
    return None


def _is_looked_up(program: Program, node: ast.expr) -> bool:
    """Whether a name is looked for in a table, where it is also the key of the entry."""
    parent = program.parents[node][0]
    return isinstance(parent, ast.Compare) and isinstance(parent.ops[0], ast.In | ast.NotIn)


def _alike(old: str, new: str) -> bool:
    parts = set(old.replace("self.", "").split("_"))
    return bool(parts & set(new.replace("self.", "").split("_")))


@family("whole-name")
def whole_expressions(program: Program) -> Iterator[Change | None]:
    """Replace a whole right-hand side, result or argument by a name in reach."""
    for node in program.loads():
        if isinstance(node, ast.Name | ast.Constant | ast.Lambda | ast.Tuple):
            continue
        parent, place = program.parents[node]
        whole = isinstance(parent, ast.Assign | ast.Return) and place == "value"
        given = isinstance(parent, ast.Call) and place == "args"
        if not (whole or given or isinstance(parent, ast.Tuple | ast.List)):
            continue
        seen = program.seen(node)
        if seen is not None and not seen.is_tensor:
            continue
        inside = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
        for other in program.scope(node):
            if other.kind not in _TENSORS or other.text.startswith("self."):
                continue
            near = 0.0 if seen and other.seen and seen.rank == other.seen.rank else 0.5
            yield change(
                1.8 + near + 0.4 * (other.text in inside), program.put(node, other.text)
            )


@family("order")
def orders(program: Program) -> Iterator[Change | None]:
    """Exchange two neighbours: arguments, elements, targets of an unpacking, results."""
    for node in ast.walk(program.tree):
        if program.function(node) is None:
            continue
        rows: list[list[ast.expr]] = []
        if isinstance(node, ast.Tuple | ast.List):
            rows.append(list(node.elts))
        elif isinstance(node, ast.Call):
            rows.append(list(node.args))
            rows.append([k.value for k in node.keywords if k.arg])
        for row in rows:
            for a, b in itertools.combinations(row[:5], 2):
                if program.text(a) == program.text(b) or isinstance(a, ast.Starred):
                    continue
                far = 0.0 if row.index(b) - row.index(a) == 1 else 0.3
                yield change(
                    1.3 + far,
                    (*program.span(a), program.text(b)),
                    (*program.span(b), program.text(a)),
                )


@family("sister")
def sisters(program: Program) -> Iterator[Change | None]:
    """Replace a function by its sister: ``tril`` by ``triu``, ``zeros`` by ``ones``."""
    for node in ast.walk(program.tree):
        if not isinstance(node, ast.Call):
            continue
        func = node.func
        name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
        for group in _SISTERS:
            if name not in group:
                continue
            for other in group:
                if other != name and isinstance(func, ast.Attribute):
                    end = program.span(func)[1]
                    yield change(1.4, (end - len(name), end, other))


@family("own-function")
def own_functions(program: Program) -> Iterator[Change | None]:
    """Pass a tensor through a function, method or layer of the file, or leave one out."""
    for node in program.loads():
        found = program.operation(node)
        own = found is not None and (
            found.form == "module" or program.definition(found) is not None
        )
        if found is not None and own and found.operand is not None:
            if not _random(program, found.name):
                yield change(2.4, program.put(node, program.at(found.operand, 0)))
            for other in _callables(program, node):
                if other.text != found.name and not _random(program, found.name):
                    yield change(1.5, (*program.span(found.node.func), other.text))
    yield from _passed_through(program)


def _passed_through(program: Program) -> Iterator[Change | None]:
    """Calls of own functions around a tensor, with the arguments they have elsewhere."""
    calls = [
        found
        for found in program.operations()
        if found.operand is not None
        and not _random(program, found.name)
        and (found.form == "module" or program.definition(found) is not None)
    ]
    for node in program.loads():
        seen = program.seen(node)
        if seen is None or not seen.is_tensor or seen.kind == "mask":
            continue
        if not isinstance(node, ast.Name | ast.Call | ast.Subscript):
            continue
        parent, place = program.parents[node]
        inside = isinstance(parent, ast.Attribute | ast.Subscript) and place == "value"
        function = program.function(node)
        done = set()
        for found in calls:
            text = performed(program, found, program.text(node), None)
            if text in done or program.function(found.node) is not function:
                continue
            if found.node is node or node in ast.walk(found.node):
                continue
            done.add(text)
            alike = _like(program.seen(found.operand), seen)
            yield change((1.8 if alike else 2.6) + 0.2 * inside, program.put(node, text))
        if inside:
            continue
        for other in _callables(program, node):
            if not _random(program, other.text):
                yield change(2.6, program.put(node, f"{other.text}({program.text(node)})"))


def _like(a: Seen | None, b: Seen | None) -> bool:
    """Whether two tensors have as many axes and the same last one."""
    if a is None or b is None or not a.shape or not b.shape:
        return False
    return a.rank == b.rank and a.shape[-1] == b.shape[-1]


def _random(program: Program, name: str) -> bool:
    """Whether a callable is a dropout layer, which no repair adds or leaves out."""
    made = f"{name} = "
    line = next((t for t in program.source.splitlines() if made in t), "")
    return "drop" in name.lower() or "Dropout" in line


def _callables(program: Program, node: ast.AST) -> Iterator[Variable]:
    function = program.function(node)
    if function is None:
        return
    methods = bool(function.args.args) and function.args.args[0].arg == "self"
    for variable in program.attributes(function):
        if variable.kind == "module" and not _random(program, variable.text):
            yield variable
    for other in program.functions():
        if other is function or other.name.startswith("__") or other.name == "forward":
            continue
        if other.name == program.entry.rpartition(".")[2]:
            continue
        owner = program.parents[other][0]
        text = f"self.{other.name}" if isinstance(owner, ast.ClassDef) else other.name
        if methods or not text.startswith("self."):
            yield Variable(text, None)
