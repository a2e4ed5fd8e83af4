"""``regard.check(obj)``: the check from Python and from notebooks.

The object's own text is checked, where it stands: functions and classes of its module are
executed again beside the names that the module holds already, nothing else is. So a notebook's
cell, or a script that would train for hours when run again, can be checked from inside.
"""

import ast
import contextlib
import dataclasses
import inspect
import linecache
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from regard.check.check import Options, check_source
from regard.check.familiar import familiar
from regard.check.finding import Report
from regard.check.roles.reading import read
from regard.errors import ConventionError, InputError, explain

__all__ = ["check"]

_FIELDS = ("init", "kinds", "values", "returns", "weights", "score", "scale", "activation")
_MORE = ("causal", "window", "positions", "convention", "mode", "dtype", "sizes", "layer")
_STATEMENTS = (*_FIELDS, *_MORE, "padding", "all_masked", "random", "reweighted", "sparse")


def check(
    target: Any,
    *,
    contract: Mapping[str, Any] | None = None,
    axes: Mapping[str, str] | None = None,
    mask: str | None = None,
    seed: int = 0,
    seconds: float = 8.0,
    repair: bool = True,
    write_test: bool = False,
    **statements: Any,
) -> Report:
    """Check an attention function or module that is in memory.

    Parameters
    ----------
    target : function, class, or module object
        What to check. Of an ``nn.Module`` object its class is checked, built with the
        object's own options (``batch_first``, ``bias``) and with sizes of the check's own.
    contract : mapping, optional
        What you declare, in the contract's form; what is left out is guessed and said.
    axes : mapping of str to str, optional
        Axes of some arguments, such as ``{"q": "batch T_dec d_h"}``.
    mask : {"keep", "drop"}, optional
        Polarity of the argument that is a mask: True = may attend, or True = may not.
    seed : int
        Seed of the inputs.
    seconds : float
        Time for the search for a repair.
    repair : bool
        Whether to search for one.
    write_test : bool
        Whether ``report.test`` holds a regression test's text.
    **statements
        Fields of the contract by name: ``score="additive"``, ``causal="top_left"``, ...

    Returns
    -------
    report : Report
        Printed as text, shown as a page in a notebook; ``report.findings`` is the data.

    Raises
    ------
    InputError
        If the text of the target cannot be found, a statement is unknown, or no arguments
        could be guessed for an object's class.
    ConventionError
        If a contract and single statements are both given.

    Notes
    -----
    The target runs in this process, so it can do here what it can do anyway; ``regard check``
    on the command line runs it in a worker with limits.
    """
    if contract is not None and (statements or axes or mask):
        raise ConventionError(
            explain(
                "check(): both a contract and single statements",
                expected="`contract`, or statements such as score='additive'",
                got=", ".join(["contract", *statements]),
            )
        )
    for name in statements:
        if name not in _STATEMENTS:
            raise InputError(
                explain(
                    "check(): unknown statement",
                    expected=", ".join(_STATEMENTS),
                    got=name,
                )
            )
    is_object = not inspect.isroutine(target) and not isinstance(target, type)
    known = familiar(target) if is_object and contract is None else None
    found = _definition(target) if known is None else known.kind
    source, path, scope = _text(found)
    flags = dict(statements)
    if known is None and is_object and contract is None and "init" not in flags:
        flags["init"] = _options_of(target, source)
    if axes:
        flags["inputs"] = dict(axes)
    if mask is not None:
        if mask not in ("keep", "drop"):
            said = "check(): `mask` is no polarity"
            raise InputError(explain(said, expected="'keep' or 'drop'", got=repr(mask)))
        flags["mask"] = mask
    options = Options(
        seed=seed,
        seconds=seconds,
        repair=repair,
        package=getattr(sys.modules.get(found.__module__), "__package__", "") or "",
        scope=scope,
        write_test=write_test,
        flags=flags or None,
    )
    entry = found.__qualname__
    with _text_kept(path):
        if known is not None:
            # Nobody mends a library from here.
            options = dataclasses.replace(options, repair=False)
            report = check_source(source, path, entry, known.contract, options)
            return dataclasses.replace(report, assumptions=(*report.assumptions, *known.says))
        if is_object and contract is None and not axes:
            # A search for a repair takes longer than to see that there is nothing to repair.
            quick = dataclasses.replace(options, repair=False)
            report = check_source(source, path, entry, contract, quick)
            _look_at(report, found)
            if not repair or report.worst in (None, "note"):
                return report
        return check_source(source, path, entry, contract, options)


def _options_of(target: Any, source: str) -> dict[str, Any]:
    """Constructor arguments that an object keeps under their own names, sizes left out.

    Sizes are the check's own: those of the object may coincide, and then hide mistakes.
    """
    try:
        options = read(source, type(target).__qualname__).options
    except (SyntaxError, ValueError, RecursionError):
        return {}
    found: dict[str, Any] = {}
    for option in options:
        value = getattr(target, option.name, None)
        if isinstance(value, bool) or (isinstance(value, float) and option.has_default):
            found[option.name] = value
        elif isinstance(value, str):
            found[option.name] = f"'{value}'"
    # What is as it is by default needs no word.
    usual = {o.name: o.default for o in options if o.has_default}
    return {
        n: v for n, v in found.items() if n not in usual or v not in (usual[n], f"'{usual[n]}'")
    }


def _look_at(report: Report, found: type) -> None:
    """Refuse to call a library's class wrong where only our guess of its arguments is.

    Raises
    ------
    InputError
        If the class did not run with what was guessed.
    """
    codes = {f.code for f in report.findings}
    if not codes & {"RG101", "RG901", "RG902"}:
        return
    worst = next(f for f in report.findings if f.code in ("RG101", "RG901", "RG902"))
    raise InputError(
        explain(
            f"check(): no arguments could be guessed for an object of {found.__qualname__}",
            expected="an object whose constructor's and call's arguments can be guessed",
            got=worst.message,
            help="declare them: contract={'init': ..., 'inputs': ..., 'returns': ...}",
        )
    )


@contextlib.contextmanager
def _text_kept(path: str) -> Iterator[None]:
    """Keep the lines that tracebacks, and the next check, read of a path.

    A check runs edited texts under the path of the user's, whose lines Python then shows.
    """
    before = linecache.cache.get(path)
    try:
        yield
    finally:
        if before is None:
            linecache.cache.pop(path, None)
        else:
            linecache.cache[path] = before


def _definition(target: Any) -> Any:
    """The function or class behind what was given."""
    if inspect.ismethod(target) or inspect.isfunction(target) or isinstance(target, type):
        found = target
    else:
        found = type(target)
    if "<locals>" in found.__qualname__ or not hasattr(found, "__module__"):
        raise InputError(
            explain(
                "check(): the target is defined inside a function",
                expected="a function or class at the top of a module or a notebook's cell",
                got=found.__qualname__,
            )
        )
    return found


def _text(found: Any) -> tuple[str, str, dict[str, Any]]:
    """The definitions of the target's file, line by line where they stand, and its names."""
    try:
        path = inspect.getsourcefile(found) or inspect.getfile(found)
        lines = linecache.getlines(path) or inspect.findsource(found)[0]
        tree = ast.parse("".join(lines))
    except (OSError, TypeError, SyntaxError) as error:
        raise InputError(
            explain(
                "check(): the text of the target cannot be found",
                expected="a function or class written in a file or a notebook's cell",
                got=f"{found!r}: {error}",
            )
        ) from None
    kept = [""] * len(lines)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            kept[first - 1 : node.end_lineno] = [
                line.rstrip("\n") for line in lines[first - 1 : node.end_lineno]
            ]
        elif isinstance(node, ast.Import | ast.ImportFrom):
            # Imports are cheap the second time and tell which library the code is in.
            kept[node.lineno - 1 : node.end_lineno] = [
                line.rstrip("\n") for line in lines[node.lineno - 1 : node.end_lineno]
            ]
    module = sys.modules.get(found.__module__)
    scope = dict(vars(module)) if module is not None else {}
    return "\n".join(kept) + "\n", path, scope
