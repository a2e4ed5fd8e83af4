"""What a public name's documentation must have, and what is missing of it.

A function names every parameter, the shape of every array, what it returns and raises; a
class its parameters or attributes, and all its public methods; a constant what it is. What
computes a paper's equation names the paper.
"""

import ast
import importlib
import inspect
import itertools
import re
import sys
import textwrap
import typing
from collections.abc import Callable, Iterator
from typing import Any

from public import PAGES, Page, public

__all__ = ["missing"]

_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)
_PAPER = re.compile(r"arXiv:|\b(?:19|20)\d\d\b|\bRFC\b")
_SELF = {"self", "cls"}


def missing(page: Page) -> Iterator[str]:
    """Say what the documentation of a page's names lacks."""
    mirrored: dict[str, set[str]] = {}
    for other in PAGES:
        if other.name == page.mirrors:
            for _, name, found in public(other):
                text = inspect.getdoc(found) or ""
                mirrored.setdefault(name, set()).update(_named(text, "Parameters"))
        if other.name == page.name and page.mirrors:
            for module, name, _ in public(other):
                told = importlib.import_module(module.name).__doc__ or ""
                mirrored.setdefault(name, set()).update(re.findall(r"``(\w+)``", told))
    for module, name, found in public(page):
        where = f"{module.name}.{name}"
        if inspect.isclass(found):
            faults = [*_of_class(found)]
        elif inspect.isfunction(inspect.unwrap(found)):  # type: ignore[arg-type]
            faults = [*_of_function(found, mirrored.get(name, set()))]
            if module.cites and not _cites(found):
                faults.append("no source")
        else:
            faults = [] if _has_comment(module.name, name) else ["no word on what it is"]
        yield from (f"{where}: {fault}" for fault in faults)


def _of_class(found: type) -> Iterator[str]:
    text = inspect.getdoc(found) if found.__doc__ else None
    if not text:
        yield "no docstring"
        return
    told = _named(text, "Parameters") | _named(text, "Attributes") | _fields_told(found)
    for parameter in _parameters(found.__init__):
        if parameter not in told and not _inherited(found):
            yield f"parameter `{parameter}`"
    for name, value in vars(found).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if name.startswith("_") or not inspect.isfunction(function):
            continue
        own = inspect.getdoc(getattr(found, name))
        if not own:
            yield f"method `{name}` has no docstring"
        elif _raises(function) and not _tells_errors(own, text):
            yield f"method `{name}` does not say what it raises"
    if _raises(found.__init__) and not _tells_errors(text):
        yield "does not say what it raises"


def _of_function(found: Callable[..., Any], elsewhere: set[str]) -> Iterator[str]:
    text = inspect.getdoc(found)
    if not text:
        yield "no docstring"
        return
    plain = "Parameters" not in _SECTION.findall(text)
    told = _named(text, "Parameters") | elsewhere
    for parameter in _parameters(found):
        # A short text may tell its few parameters in a sentence.
        in_words = plain and len(_parameters(found)) <= 3
        if parameter not in told and not in_words:
            yield f"parameter `{parameter}`"
    for parameter in _arrays(found):
        if not re.search(rf"\b{parameter}\b.*?\(", text, re.DOTALL):
            yield f"shape of `{parameter}`"
    if (
        not elsewhere
        and _returns(found)
        and not re.search(r"^(?:Returns|Yields)\n-|^Return|^Yield", text, re.MULTILINE)
    ):
        yield "does not say what it returns"
    if _raises(found) and not _tells_errors(text):
        yield "does not say what it raises"


def _named(text: str, section: str) -> set[str]:
    """Return the names that a section tells of."""
    match = re.search(rf"^{section}\n-+\n(.*?)(?=^\w[\w ]*\n-{{3,}}$|\Z)", text, re.M | re.S)
    names: set[str] = set()
    for line in (match[1] if match else "").splitlines():
        if line and not line[0].isspace():
            names |= {n.strip().lstrip("*") for n in line.partition(" : ")[0].split(",")}
    return names


def _fields_told(found: type) -> set[str]:
    """Return the fields that have a text below them, as named tuples have."""
    names: set[str] = set()
    for base in found.__mro__[:-1]:
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        except (OSError, TypeError):
            continue
        body = tree.body[0].body if isinstance(tree.body[0], ast.ClassDef) else []
        for before, after in itertools.pairwise(body):
            if isinstance(before, ast.AnnAssign) and isinstance(after, ast.Expr):
                names.add(typing.cast(ast.Name, before.target).id)
    return names


def _inherited(found: type) -> bool:
    return "__init__" not in vars(found) and not hasattr(found, "__dataclass_fields__")


def _parameters(found: Any) -> list[str]:
    try:
        given = inspect.signature(found).parameters
    except (TypeError, ValueError):
        return []
    own = [p for p in given.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return [p.name for p in own if p.name not in _SELF and not p.name.startswith("_")]


def _arrays(found: Any) -> list[str]:
    try:
        hints = typing.get_type_hints(found)
    except Exception:  # names that only a type checker sees
        return []
    return [
        name
        for name, hint in hints.items()
        if name != "return"
        and any(hasattr(part, "dim_str") for part in (typing.get_args(hint) or (hint,)))
    ]


def _returns(found: Any) -> bool:
    return inspect.signature(found).return_annotation not in (
        None,
        "None",
        inspect.Parameter.empty,
    )


def _raises(found: Any) -> bool:
    """Whether a function's own text raises, or its arguments are checked."""
    wrapped = hasattr(found, "__wrapped__") and getattr(found, "__code__", None) is not None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(found))))
    except (OSError, TypeError, SyntaxError):
        return False
    own = any(
        isinstance(node, ast.Raise) and node.exc is not None and not _internal(node.exc)
        for node in ast.walk(tree)
    )
    checked = wrapped and "checked" in ast.unparse(tree).split("def ")[0]
    return own or checked


def _internal(raised: ast.expr) -> bool:
    shown = ast.unparse(raised)
    return shown.startswith(("AttributeError", "AssertionError", "StopIteration", "_", "error"))


def _tells_errors(*texts: str) -> bool:
    return any(
        re.search(r"^Raises\n-|\b[Rr]aise|Error\b", text, re.MULTILINE) for text in texts
    )


def _cites(found: Any) -> bool:
    module = inspect.getmodule(found)
    texts = (inspect.getdoc(found), module.__doc__ if module else "")
    return any(_PAPER.search(text or "") for text in texts)


def _has_comment(module: str, name: str) -> bool:
    """Whether a text stands below a constant, or the constant is another module's."""
    body = ast.parse(inspect.getsource(importlib.import_module(module))).body
    for before, after in itertools.pairwise([*body, ast.Pass()]):
        targets = getattr(before, "targets", [getattr(before, "target", None)])
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    return True


def main() -> int:
    """List everything that is missing."""
    found = [fault for page in PAGES for fault in missing(page)]
    print("\n".join(found) or "everything public is documented")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
