"""What the author's file says about a target: parameters, docstrings, comments, code.

Only the text is read here; nothing runs. The parts of the file that the target reaches (its
methods, the functions and classes it calls) count as its code; the docstrings and comments
inside the target itself count as its words.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

__all__ = ["Parameter", "Reading", "is_option", "keeps_arrays", "read"]

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Parameter:
    """One parameter of the call or of the constructor."""

    name: str
    has_default: bool
    default: object  # the literal; None also where it is no literal
    annotation: str
    star: bool = False
    owner: str = ""  # the constructor's argument that this is an attribute of

    @property
    def is_flag(self) -> bool:
        """A switch of the author's, best left as it is."""
        return self.has_default and isinstance(self.default, bool | str)


@dataclass(frozen=True)
class Reading:
    """A target as its text shows it."""

    entry: str
    tree: ast.Module
    source: str
    owner: ast.ClassDef | None
    call: FunctionNode | None
    build: FunctionNode | None
    parameters: tuple[Parameter, ...]
    options: tuple[Parameter, ...]  # of the constructor

    @cached_property
    def reach(self) -> tuple[ast.AST, ...]:
        """The target and everything of the file that it mentions, each once."""
        start: ast.AST | None = self.owner or self.call
        if start is None:
            return ()
        named = {
            n.name: n
            for n in self.tree.body
            if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        }
        found: dict[int, ast.AST] = {}
        todo: list[ast.AST] = [start]
        while todo:
            node = todo.pop()
            if id(node) in found:
                continue
            found[id(node)] = node
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and inner.id in named:
                    todo.append(named[inner.id])
        return tuple(found.values())

    def walk(self) -> Iterator[ast.AST]:
        """Every node of the target's code."""
        for node in self.reach:
            yield from ast.walk(node)

    @cached_property
    def code(self) -> str:
        """The target's code as plain text without comments and docstrings."""
        return "\n".join(ast.unparse(_undocumented(node)) for node in self.reach)

    @cached_property
    def identifiers(self) -> frozenset[str]:
        """Every name in the target's code."""
        found = set()
        for node in self.walk():
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, FunctionNode | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.arg | ast.keyword) and node.arg:
                found.add(node.arg)
        return frozenset(found)

    @cached_property
    def docs(self) -> tuple[str, ...]:
        """Docstrings of the target: the class's, the call's, the constructor's."""
        nodes = (self.owner, self.call, self.build)
        texts = (ast.get_docstring(n) for n in nodes if n is not None)
        return tuple(dict.fromkeys(t for t in texts if t))

    @cached_property
    def comments(self) -> tuple[str, ...]:
        """Comments inside the target and directly above it, each its own line."""
        node = self.owner or self.call
        if node is None:
            return ()
        first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        last = node.end_lineno or node.lineno
        every = _comments(self.source)
        while first - 1 in every:
            first -= 1
        return tuple(text for line, text in every.items() if first <= line <= last)

    @cached_property
    def opening(self) -> tuple[str, ...]:
        """Comments before the call's first statement, when arguments still are as given."""
        if self.call is None:
            return ()
        body = self.call.body
        if len(body) > 1 and ast.get_docstring(self.call) is not None:
            body = body[1:]
        every = _comments(self.source)
        lines = range(self.call.lineno, body[0].lineno)
        return tuple(every[line] for line in lines if line in every)

    @cached_property
    def beside(self) -> dict[str, str]:
        """Comments on the line of an argument, where each argument has its own line."""
        if self.call is None:
            return {}
        every = _comments(self.source)
        given = [*self.call.args.posonlyargs, *self.call.args.args, *self.call.args.kwonlyargs]
        lines = [a.lineno for a in given]
        alone = {a.arg: a.lineno for a in given if lines.count(a.lineno) == 1}
        return {n: every[line] for n, line in alone.items() if line in every}

    @cached_property
    def words(self) -> str:
        """Everything that the author says in words: docstrings, then comments."""
        return "\n".join((*self.docs, *self.comments))

    @cached_property
    def names(self) -> str:
        """The names that the author gave to the target: class, function, file's own words."""
        nodes = (self.owner, self.call)
        return " ".join(n.name for n in nodes if n is not None)


def read(source: str, entry: str, tree: ast.Module | None = None) -> Reading:
    """Read a file's text for one target, ``name``, ``Class`` or ``Class.method``."""
    tree = tree or ast.parse(source)
    owner, call, build = _find(tree, entry)
    parameters = _parameters(call, is_method=owner is not None)
    options = _attributes(_parameters(build, is_method=True), build)
    return Reading(entry, tree, source, owner, call, build, parameters, options)


def _find(
    tree: ast.Module, entry: str
) -> tuple[ast.ClassDef | None, FunctionNode | None, FunctionNode | None]:
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    first, _, method = entry.partition(".")
    if first not in classes:
        for node in tree.body:
            if isinstance(node, FunctionNode) and node.name == entry:
                return None, node, None
        return None, None, None
    owner = classes[first]
    names = (method,) if method else ("forward", "__call__", "call")
    call = next((f for n in names if (f := _method(classes, owner, n))), None)
    return owner, call, _method(classes, owner, "__init__")


def _method(
    classes: dict[str, ast.ClassDef], owner: ast.ClassDef, name: str, depth: int = 0
) -> FunctionNode | None:
    """A method of a class, or of the bases that the file itself defines."""
    for node in owner.body:
        if isinstance(node, FunctionNode) and node.name == name:
            return node
    for base in owner.bases:
        if isinstance(base, ast.Name) and base.id in classes and depth < 8:
            found = _method(classes, classes[base.id], name, depth + 1)
            if found is not None:
                return found
    return None


def _parameters(node: FunctionNode | None, *, is_method: bool) -> tuple[Parameter, ...]:
    if node is None:
        return ()
    static = any(
        isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list
    )
    given = [*node.args.posonlyargs, *node.args.args]
    defaults: list[ast.expr | None] = [None] * (len(given) - len(node.args.defaults))
    defaults += node.args.defaults
    pairs = list(zip(given, defaults, strict=True))
    if is_method and not static:
        pairs = pairs[1:]
    pairs += list(zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True))
    found = [
        Parameter(a.arg, d is not None, _literal(d), "" if not a.annotation else _text(a))
        for a, d in pairs
    ]
    if node.args.vararg is not None:
        found.append(Parameter(node.args.vararg.arg, True, None, "", star=True))
    return tuple(found)


def _attributes(
    options: tuple[Parameter, ...], build: FunctionNode | None
) -> tuple[Parameter, ...]:
    """Replace an argument that is only read by attributes (``config.width``) by these."""
    found: list[Parameter] = []
    for option in options:
        names = [
            n.attr
            for n in (ast.walk(build) if build is not None else ())
            if isinstance(n, ast.Attribute)
            and isinstance(n.value, ast.Name)
            and n.value.id == option.name
        ]
        is_config = re.search(r"config|cfg|args|hparams|opt$|params|conf$", option.name)
        if is_config and names and not option.has_default:
            found += [
                Parameter(n, False, None, "", owner=option.name) for n in dict.fromkeys(names)
            ]
        else:
            found.append(option)
    return tuple(found)


def _text(argument: ast.arg) -> str:
    assert argument.annotation is not None
    return ast.unparse(argument.annotation)


def _literal(node: ast.expr | None) -> object:
    if node is None:
        return None
    try:
        return ast.literal_eval(node)
    except (ValueError, SyntaxError):
        return None


def _undocumented(node: ast.AST) -> ast.AST:
    """A copy of a node without docstrings."""
    text = ast.unparse(node)
    copy = ast.parse(text)
    for inner in ast.walk(copy):
        body = getattr(inner, "body", None)
        if isinstance(body, list) and body and _is_text(body[0]):
            body[:1] = [ast.Pass()] if len(body) == 1 else []
    return copy


def _is_text(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _comments(source: str) -> dict[int, str]:
    found = {}
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type == tokenize.COMMENT:
                text = re.sub(r"^#+:?\s?", "", token.string)
                if not text.startswith(("noqa", "type:", "regard:", "pylint", "!")):
                    found[token.start[0]] = text
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return found
    return found


def is_option(reading: Reading, names: str) -> bool:
    """Whether code names something under conditions only: one of several that are built in."""
    start = reading.owner or reading.call
    if start is None:
        return False
    inside = (ast.walk(n) for n in ast.walk(start) if isinstance(n, ast.If | ast.IfExp))
    under = {id(each) for nodes in inside for each in nodes}
    found = [
        id(node) in under
        for node in ast.walk(start)
        if isinstance(node, ast.Name | ast.Attribute)
        and re.search(names, getattr(node, "id", getattr(node, "attr", "")), re.IGNORECASE)
    ]
    return bool(found) and all(found)


def keeps_arrays(reading: Reading) -> bool:
    """Whether the constructor takes matrices to multiply by, where only a size can be given."""
    options = {option.name for option in reading.options}
    for node in ast.walk(reading.build) if reading.build is not None else ():
        if not isinstance(node, ast.Assign):
            continue
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            pairs = list(zip(target.elts, value.elts, strict=False))
        for to, what in pairs:
            if isinstance(to, ast.Attribute) and isinstance(what, ast.Name):
                kept = rf"self\.{to.attr}\b"
                used = rf"@ {kept}|{kept}(\.T)? @|(matmul|dot|einsum)\([^()]*{kept}"
                if what.id in options and re.search(used, reading.code):
                    return True
    return False
