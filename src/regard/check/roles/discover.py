"""Finds attention in files by reading them: nothing is imported and nothing runs.

A function or class is a candidate where its own code normalises scores (a softmax, or a
quotient of exponentials) and joins arrays by products, where it calls a fused attention, or
where its name says attention and it takes more than one array.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regard.check.roles.reading import Parameter, Reading, read

__all__ = ["Candidate", "Skipped", "discover", "discover_in"]

_NAME = re.compile(r"attention|attend|attn|alignment|(^|_)align(_|$)", re.IGNORECASE)
_SPEAKS = re.compile(
    r"attention|attend|attn|alpha|align|causal|(^|\W)(query|queries|keys?)(\W|$)", re.IGNORECASE
)
_FUSED = re.compile(
    r"scaled_dot_product_attention|MultiheadAttention\(|multi_head_attention_forward|flex_attention"
)
_SOFTMAX = re.compile(r"softmax", re.IGNORECASE)
_EXP = re.compile(r"\bexp\(")
_SUM = re.compile(r"\.sum\(|\bsum\(")
_PRODUCT = re.compile(r" @ |\b(matmul|bmm|einsum|tensordot|dot|baddbmm)\(|\.(mm|mv|dot)\(")
_WEIGHED = re.compile(r"\.sum\(|\bsum\(")
_ANY = re.compile(r"softmax|\bexp\(|[aA]ttention")
_NO_FOLDERS = {"__pycache__", "node_modules", "build", "dist", "site-packages"}


@dataclass(frozen=True)
class Candidate:
    """Something that looks like attention: ``path``, entry in it, and why."""

    entry: str
    reason: str
    path: str = ""
    line: int = 1


@dataclass(frozen=True)
class Skipped:
    """Something that was looked at and left out, and why."""

    name: str
    reason: str
    path: str = ""
    line: int = 1


def discover(path: str | Path) -> list[Candidate | Skipped]:
    """Look for attention in a file, or in every Python file of a folder.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    found : list of Candidate and Skipped
        In the order of files and lines. What has nothing to do with attention is not
        mentioned; what has, and cannot be checked by itself, is skipped with the reason.
    """
    path = Path(path)
    files = [path] if path.is_file() else sorted(_files(path))
    return [found for file in files for found in _in_file(file)]


def _files(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*.py"):
        inside = file.relative_to(folder).parts[:-1]
        if not any(p.startswith(".") or p in _NO_FOLDERS for p in inside):
            yield file


def _in_file(file: Path) -> Iterator[Candidate | Skipped]:
    try:
        source = file.read_text(encoding="utf-8")
        if not _ANY.search(source):
            return
        tree = ast.parse(source)
    except (OSError, UnicodeDecodeError, SyntaxError, ValueError, RecursionError) as error:
        yield Skipped(file.name, f"cannot be read as Python: {error}", str(file))
        return
    yield from _in_tree(tree, source, str(file))


def discover_in(source: str) -> list[str]:
    """Return the names of what looks like attention in the text of a file.

    Raises
    ------
    SyntaxError
        The text is no Python.
    """
    found = _in_tree(ast.parse(source), source, "") if _ANY.search(source) else ()
    return [one.entry for one in found if isinstance(one, Candidate)]


def _in_tree(tree: ast.Module, source: str, path: str) -> Iterator[Candidate | Skipped]:
    nodes = [
        n
        for n in tree.body
        if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]
    for node in nodes:
        reading = read(source, node.name, tree)
        why = _reason(node, reading)
        if not why:
            continue
        problem = _problem(node, reading)
        line = node.lineno
        if problem:
            yield Skipped(node.name, problem, path, line)
        else:
            yield Candidate(node.name, why, path, line)


def _reason(node: ast.AST, reading: Reading) -> str:  # noqa: PLR0911 - one a reason
    """Why a function or class looks like attention, or an empty text."""
    own = ast.unparse(node)
    code = reading.code
    name = getattr(node, "name", "")
    named = _NAME.search(name) is not None
    if _FUSED.search(own):
        return "it calls a fused attention"
    normalises = bool(_SOFTMAX.search(own)) or bool(_EXP.search(own) and _SUM.search(own))
    if normalises and _PRODUCT.search(own) and (_arrays(reading) or reading.call is None):
        return "it normalises scores and multiplies arrays"
    if normalises and named and _WEIGHED.search(own):
        return "its name, and it sums by normalised weights"
    if normalises and re.search(r"\btanh\(|\.tanh\(|\brelu\(|Tanh\(\)", own):
        return "it normalises scores made by a small network"
    if normalises and _WEIGHED.search(own) and re.search(r" \* ", own):
        return "it sums by normalised weights"
    if normalises and _SPEAKS.search(f"{reading.words} {' '.join(reading.identifiers)}"):
        return "it normalises scores, and speaks of attention"
    reached = bool(_SOFTMAX.search(code)) or bool(_EXP.search(code) and _SUM.search(code))
    joined = bool(_PRODUCT.search(code) or _WEIGHED.search(code))
    if named and reached and joined:
        return "its name, and the softmax that it calls"
    is_function = isinstance(node, ast.FunctionDef) and len(_arrays(reading)) > 1
    return "the softmax that it calls" if is_function and reached and joined else ""


def _problem(node: ast.AST, reading: Reading) -> str:
    """Why a candidate cannot be checked by itself, or an empty text."""
    name = getattr(node, "name", "")
    if reading.call is None:
        return "it has no forward or __call__ method"
    if name.startswith("test_") or name.startswith("Test"):
        return "it is a test"
    if isinstance(node, ast.FunctionDef) and re.fullmatch(
        r"_?(masked_?)?(log_?)?softmax\w*", name
    ):
        return "it is a softmax, a part of attention"
    if not _arrays(reading):
        return "it takes no arrays"
    if isinstance(node, ast.ClassDef):
        for option in reading.options:
            if not option.has_default and re.search(r"Module|Callable", option.annotation):
                return f"its constructor needs another module (`{option.name}`)"
    return ""


def _arrays(reading: Reading) -> tuple[Parameter, ...]:
    return tuple(
        p
        for p in reading.parameters
        if not p.star
        and not p.is_flag
        and not re.match(r"(int|float|bool|str)\b", p.annotation)
    )
