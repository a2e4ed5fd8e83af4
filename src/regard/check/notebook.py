"""In a notebook: ``%load_ext regard``, then ``%%regard`` at the head of a cell.

The cell runs as it would, under :func:`regard.watch`: an exception comes with named axes. Then
the attention that the cell defines is checked where it stands, and each report is shown.
"""

import ast
import importlib
from collections.abc import Callable, Sequence
from typing import Any

from regard.check.watch import Watch
from regard.errors import InputError, RegardError, explain

__all__ = ["load_ipython_extension", "run_cell"]

_HELP = "%%regard [NAME ...] [batch=32 ...] [score=additive ...]"


def load_ipython_extension(shell: Any) -> None:
    """Add the cell magic ``%%regard``; IPython calls this for ``%load_ext regard``."""

    def regard(line: str, cell: str) -> None:
        """Run a cell under watch, then check the attention it defines.

        ``%%regard attend batch=32 mask=keep`` names what to check (left out: every function
        and class of the cell that looks like attention), sizes of axes for errors, and
        statements of the contract.
        """
        run_cell(shell, line, cell, show=_show)

    shell.register_magic_function(regard, magic_kind="cell", magic_name="regard")


def run_cell(
    shell: Any, line: str, cell: str, *, show: Callable[[Any], None] = print
) -> list[Any]:
    """Run a cell, check what it defines, and return the reports.

    Parameters
    ----------
    shell : InteractiveShell
        Of IPython.
    line : str
        What follows ``%%regard``.
    cell : str
        The cell.
    show : callable
        Shows a report, or the text that says why there is none.
    """
    try:
        names, sizes, statements = _read(line)
    except InputError as error:
        show(str(error))
        return []
    with Watch(sizes) as seen:

        def with_axes(
            inner: Any, kind: type[BaseException], error: BaseException, trace: Any, **more: Any
        ) -> None:
            seen.annotate(error)
            inner.showtraceback((kind, error, trace), **more)

        before = shell.custom_exceptions, shell.CustomTB
        shell.set_custom_exc((Exception,), with_axes)
        try:
            ran = shell.run_cell(cell)
        finally:
            shell.custom_exceptions, shell.CustomTB = before
    if not ran.success:
        return []
    reports = []
    for name in names or _attention(shell.transform_cell(cell)):
        try:
            reports.append(_checked(shell, name, statements))
        except RegardError as error:
            show(str(error))
        else:
            show(reports[-1])
    return reports


def _checked(shell: Any, name: str, statements: dict[str, Any]) -> Any:
    from regard.check.api import check  # noqa: PLC0415 - only where something is checked

    if name not in shell.user_ns:
        raise InputError(
            explain(
                f"%%regard: there is no `{name}`",
                expected="a function or class that this cell or an earlier one defines",
                got=name,
            )
        )
    return check(shell.user_ns[name], **statements)


def _read(line: str) -> tuple[list[str], dict[str, int], dict[str, Any]]:
    """Split ``attend batch=32 mask=keep`` into names, sizes and statements."""
    names: list[str] = []
    sizes: dict[str, int] = {}
    statements: dict[str, Any] = {}
    for word in line.split():
        name, equals, value = word.partition("=")
        if not name.isidentifier() or (equals and not value):
            raise InputError(
                explain(f"%%regard: {word!r} is refused", expected=_HELP, got=word)
            )
        if not equals:
            names.append(name)
        elif value.isdigit() and name not in ("window", "seed"):
            sizes[name] = int(value)
        else:
            statements[name] = _literal(value)
    return names, sizes, statements


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text.capitalize() if text in ("true", "false") else text)
    except (ValueError, SyntaxError):
        return text


def _attention(source: str) -> Sequence[str]:
    """Names of what looks like attention in a text."""
    from regard.check.roles.discover import discover_in  # noqa: PLC0415 - loads NumPy

    return discover_in(source)


def _show(report: Any) -> None:
    if isinstance(report, str):
        print(report)
    else:
        importlib.import_module("IPython.display").display(report)
