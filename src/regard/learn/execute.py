"""Running a lesson: its blocks share one namespace and one folder, as a session does."""

import ast
import contextlib
import io
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import RegardError
from regard.learn.fences import Fence, pairs

__all__ = ["Ran", "execute"]

Run = Callable[[Sequence[str]], int]


@dataclass(frozen=True)
class Ran:
    """A block, what the lesson says that it prints, and what it printed.

    Attributes
    ----------
    block, output : Fence
        The output is None where the lesson shows none.
    printed : str
        What it wrote to stdout; for ``raises`` the error; for a console block all of it, with
        its command lines.
    figure : str
        The SVG of a ``figure`` block, else "".
    """

    block: Fence
    output: Fence | None
    printed: str
    figure: str = ""


def execute(text: str, *, run: Run) -> Iterator[Ran]:
    """Run a lesson's blocks one after another.

    Parameters
    ----------
    text : str
        The lesson.
    run : callable
        Runs the words of a ``regard`` command line and returns its exit code.

    Yields
    ------
    ran : Ran
        For each block of Python or console, as soon as it is done.

    Raises
    ------
    AssertionError
        A block that must raise does not, or a figure is no SVG.
    Exception
        Whatever else a block raises.
    """
    space: dict[str, Any] = {"__name__": "__lesson__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        # Errors and tools look for a block's text by file and line.
        code = Path(folder, "lesson.py")
        code.write_text(_code(text), encoding="utf-8")
        for block, output in pairs(text):
            if block.language == "console":
                yield Ran(block, output, _console(block.body, run))
            elif "file" in block.options:
                Path(block.options["file"]).write_text(block.body, encoding="utf-8")
                yield Ran(block, output, "")
            else:
                yield _python(block, output, space, str(code))


def _code(text: str) -> str:
    """Return the lesson's Python, each line where it stands in the lesson."""
    lines = [""] * len(text.splitlines())
    for block, _ in pairs(text):
        if block.language == "python":
            lines[block.first + 1 : block.last] = block.body.splitlines()
    return "\n".join(lines) + "\n"


def _python(block: Fence, output: Fence | None, space: dict[str, Any], file: str) -> Ran:
    # Line numbers of errors are those of the lesson.
    tree = ast.parse("\n" * (block.first + 1) + block.body)
    stdout = io.StringIO()
    drawn: ast.Expression | None = None
    if "figure" in block.options:
        last = tree.body.pop()
        if not isinstance(last, ast.Expr):
            raise AssertionError(f"line {block.last}: a figure block ends with an expression")
        drawn = ast.Expression(last.value)
    raised, figure = "", ""
    with contextlib.redirect_stdout(stdout):
        try:
            exec(compile(tree, file, "exec"), space)
            if drawn is not None:
                figure = eval(compile(drawn, file, "eval"), space)
        except RegardError as error:
            if "raises" not in block.options:
                raise
            kind = type(error)
            raised = f"{kind.__module__}.{kind.__name__}: {error}\n"
    if "raises" in block.options and not raised:
        raise AssertionError(f"line {block.first + 1}: nothing was raised")
    if drawn is not None and not (isinstance(figure, str) and figure.startswith("<svg")):
        raise AssertionError(f"line {block.last}: the figure is no SVG")
    return Ran(block, output, stdout.getvalue() + raised, figure)


def _console(body: str, run: Run) -> str:
    told = []
    for line in body.splitlines():
        if not line.startswith("$ "):
            continue
        program, *words = shlex.split(line[2:])
        if program not in {"regard", "cat"}:
            raise AssertionError(f"{line!r}: a lesson runs regard alone")
        stdout = io.StringIO()
        with contextlib.redirect_stdout(stdout):
            if program == "cat":
                stdout.write("".join(Path(word).read_text(encoding="utf-8") for word in words))
            else:
                run(words)
        told.append(f"{line}\n{stdout.getvalue().rstrip()}\n")
    return "\n".join(told)
