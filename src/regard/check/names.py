"""Names that a file defines, found in its syntax tree."""

import ast
import difflib
from collections.abc import Iterable, Iterator, Sequence

from regard.errors import InputError, explain

__all__ = ["defined", "look_up", "some"]

_DEFINED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def look_up(tree: ast.Module, entry: str, path: str) -> None:
    """Make sure that a file defines a name, as far as its text tells.

    Parameters
    ----------
    tree : ast.Module
        Of the file.
    entry : str
        ``name`` or ``Class.method``.
    path : str
        For the message.

    Raises
    ------
    InputError
        It does not; the text names the nearest names, or where an imported name is from.
    """
    first, *rest = entry.split(".")
    names = dict(_bound(tree.body))
    if first not in names:
        raise _no_such(entry, path, first, defined(tree), _imported(tree).get(first))
    node = names[first]
    for part in rest:
        if not isinstance(node, ast.ClassDef):
            return  # made at run time; only running it can tell
        inside = dict(_bound(node.body))
        if part not in inside:
            if node.bases:  # may be inherited
                return
            options = [name for name, what in inside.items() if isinstance(what, _DEFINED)]
            raise _no_such(entry, path, part, options, None)
        node = inside[part]


def defined(tree: ast.Module) -> list[str]:
    """Return the functions and classes of a file, and their public methods with the class."""
    found: list[str] = []
    for name, node in _bound(tree.body):
        if isinstance(node, _DEFINED):
            found.append(name)
        if isinstance(node, ast.ClassDef):
            methods = [n for n, what in _bound(node.body) if isinstance(what, _DEFINED)]
            found += [f"{name}.{method}" for method in methods if not method.startswith("_")]
    return found


def some(names: Sequence[str], most: int = 8) -> str:
    """Return names for a sentence, not too many."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _bound(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.AST]]:
    """Names bound by statements, those under `if`, `try` and `with` included."""
    for statement in body:
        if isinstance(statement, _DEFINED):
            yield statement.name, statement
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            left = (
                statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            )
            for node in (node for target in left for node in ast.walk(target)):
                if isinstance(node, ast.Name):
                    yield node.id, statement
        else:
            for block in ("body", "orelse", "finalbody"):
                yield from _bound(getattr(statement, block, []))
            for handler in getattr(statement, "handlers", []):
                yield from _bound(handler.body)


def _imported(tree: ast.Module) -> dict[str, str]:
    return {
        alias.asname or alias.name: "." * node.level + (node.module or "")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _no_such(
    entry: str, path: str, part: str, options: Sequence[str], origin: str | None
) -> InputError:
    near = difflib.get_close_matches(entry, options, 3, 0.5)
    near = near or difflib.get_close_matches(part, options, 3, 0.5)
    what = f"did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else None
    if origin is not None:
        what = f"it comes from `{origin}`: name it there"
    return InputError(
        explain(
            f"check: `{path}` defines no `{part}`",
            expected=f"one of {some(options)}" if options else "a function or class in it",
            got=entry,
            help=what,
        )
    )
