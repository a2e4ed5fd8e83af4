"""What to check: from ``decoder.py:attend`` on the command line to a file's text and a name.

Nothing of the user's runs here: names are found in the syntax tree, modules on the search path.
"""

import ast
import difflib
import importlib.machinery
import io
import os
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.check.names import defined, look_up, some
from regard.errors import InputError, explain

__all__ = [
    "Broken",
    "Discover",
    "Target",
    "find_targets",
    "import_folders",
    "package_of",
    "read_source",
    "reread",
]

Discover = Callable[[str], Iterable[str]]
"""Names of the attention-like functions and classes in a file's text."""

# A broken file of a folder is only worth a word if it could have held attention code.
_ATTENTION = re.compile(r"atten|attn|softmax|align", re.IGNORECASE)
_SKIPPED = {"__pycache__", "node_modules", "site-packages", "build", "dist"}
_LARGEST = 4 * 2**20  # bytes; no file that a person wrote is longer
_FORMS = "file.py:name, file.py:Class.method, package.module:name, file.py or a folder"


@dataclass(frozen=True)
class Broken:
    """Why a file cannot be parsed, and where; or why there is nothing to parse."""

    why: str
    line: int = 1
    column: int = 1
    is_read: bool = True


@dataclass(frozen=True)
class Target:
    r"""A name in a file, with the file's text.

    Parameters
    ----------
    path : str
        As the user wrote it, so that it reads the same in every finding.
    entry : str
        ``name`` or ``Class.method``; empty if the file is broken and no name was given.
    source : str
        The file's text, line ends as ``\n``.
    broken : Broken or None
        Set if Python cannot parse the text.
    """

    path: str
    entry: str
    source: str
    broken: Broken | None = None

    @property
    def name(self) -> str:
        """The target as one writes it: ``decoder.py:attend``."""
        return f"{self.path}:{self.entry}" if self.entry else self.path


def find_targets(
    texts: Sequence[str], *, discover: Discover | None = None, each: bool = False
) -> tuple[list[Target], list[str]]:
    """Find what the targets of a command line mean.

    Parameters
    ----------
    texts : sequence of str
        Each of the form file.py:name, file.py:Class.method, package.module:name, file.py or a
        folder; the last two stand for every attention-like name inside.
    discover : callable, optional
        Names the attention-like functions and classes of a text.
    each : bool
        Whether one that is not to be found is a broken target, and the others are returned.

    Returns
    -------
    targets : list of Target
        In order, each once.
    notes : list of str
        What was passed over and why.

    Raises
    ------
    InputError
        If a file, module or name does not exist (with `each`, all of them), or nothing at all
        was found.
    """
    found: dict[str, Target] = {}
    notes: list[str] = []
    missing: InputError | None = None
    for text in texts:
        try:
            here = list(_find(text, discover or _discover))
        except InputError as error:
            missing = missing or error
            if not each:
                raise
            here = [_missing(text, error)]
        if not here:
            notes.append(f"{text}: nothing in it looks like attention; name it as {text}:NAME")
        for target in here:
            found.setdefault(target.name, target)
    if missing is not None and not any(
        t.broken is None or t.broken.is_read for t in found.values()
    ):
        raise missing  # there are no others that could be checked
    if not found:
        raise InputError(
            explain(
                "check: nothing that looks like attention was found",
                expected="a function or class that computes attention",
                got=_defined(texts) or "no functions or classes",
                help="name it, as file.py:NAME",
            )
        )
    return list(found.values()), notes


def read_source(path: str | Path, *, verb: str = "check") -> str:
    r"""Read a Python file as Python does: its declared encoding, line ends as ``\n``.

    Parameters
    ----------
    path : path
    verb : str
        Who asks, for messages.

    Raises
    ------
    InputError
        If it is missing, unreadable, too large or no text.
    """
    try:
        with open(path, "rb") as stream:
            data = stream.read(_LARGEST + 1)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        near = _near_files(Path(path)) if isinstance(error, FileNotFoundError) else None
        raise InputError(
            explain(
                f"{verb}: `{path}` cannot be read",
                expected="a readable Python file",
                got=why.lower(),
                help=near,
            )
        ) from None
    if len(data) > _LARGEST:
        raise _unreadable(verb, path, f"at most {_LARGEST // 2**20} MiB", "a larger file")
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise _unreadable(
            verb, path, "Python text, UTF-8 unless it says otherwise", str(error)
        ) from None
    return re.sub(r"\r\n?", "\n", text)


def reread(target: Target) -> Target:
    """Return a target with the text that its file has now.

    Raises
    ------
    InputError
        It cannot be read any more.
    """
    if target.broken is not None and not target.broken.is_read:
        return target
    source = read_source(target.path)
    tree = _parse(source)
    broken = tree if isinstance(tree, Broken) else None
    return Target(target.path, target.entry, source, broken)


def import_folders(path: str | Path) -> tuple[str, ...]:
    """Folders to import from: the one above the file's outermost package, then its own."""
    own = Path(os.path.abspath(path)).parent
    root = own.parents[len(_packages(own)) - 1] if _packages(own) else own
    return tuple(dict.fromkeys((str(root), str(own))))


def package_of(path: str | Path) -> str:
    """Return the dotted name of the package that a file lies in, "" if it lies in none."""
    return ".".join(_packages(Path(os.path.abspath(path)).parent))


def _packages(folder: Path) -> list[str]:
    names: list[str] = []
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names.insert(0, folder.name)
        folder = folder.parent
    return names


def _find(text: str, discover: Discover) -> Iterator[Target]:
    if os.path.isdir(text):
        yield from _folder(Path(text), discover)
        return
    place, colon, entry = (text, "", "") if os.path.isfile(text) else text.rpartition(":")
    if not colon:
        place, entry = text, ""
    if colon and not (place and entry):
        raise InputError(
            explain(f"check: `{text}` is no target", expected=_FORMS, got=repr(text))
        )
    if os.path.isdir(place):
        raise InputError(
            explain(
                f"check: `{place}` is a folder, which has no names",
                expected="file.py:name",
                got=text,
                help=f"`{place}` alone checks every file in it",
            )
        )
    path = place if _is_file(place) else _module(place, text)
    yield from _file(path, entry, discover)


def _is_file(place: str) -> bool:
    return os.path.exists(place) or place.endswith(".py") or os.sep in place or "/" in place


def _module(name: str, text: str) -> str:
    """Return the file of a dotted module name, importing nothing."""
    where: list[str] | None = [os.getcwd(), *sys.path]
    spec = None
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        dotted = ".".join(parts[:count])
        spec = importlib.machinery.PathFinder.find_spec(dotted, where) if where else None
        if spec is None:
            raise InputError(
                explain(
                    f"check: there is no file and no module `{dotted}`",
                    expected=_FORMS,
                    got=repr(text),
                    help=_near_files(Path(name + ".py")),
                )
            )
        inside = spec.submodule_search_locations
        where = None if inside is None else list(inside)
    origin = spec.origin if spec is not None else None
    if origin is None or not origin.endswith(".py"):
        raise InputError(
            explain(
                f"check: the module `{name}` has no Python source",
                expected="a module written in Python",
                got=origin or "a package without __init__.py",
            )
        )
    shown = os.path.relpath(origin)
    return origin if shown.startswith("..") else shown


def _file(path: str, entry: str, discover: Discover) -> Iterator[Target]:
    if not path.endswith((".py", ".pyw")) and os.path.isfile(path):
        is_notebook = path.endswith(".ipynb")
        raise InputError(
            explain(
                f"check: `{path}` is no Python file",
                expected="a file whose name ends in .py",
                got=os.path.basename(path),
                help="`jupyter nbconvert --to script` makes one" if is_notebook else None,
            )
        )
    source = read_source(path)
    tree = _parse(source)
    if isinstance(tree, Broken):
        yield Target(path, entry, source, tree)
    elif entry:
        look_up(tree, entry, path)
        yield Target(path, entry, source)
    else:
        yield from (Target(path, name, source) for name in discover(source))


def _folder(folder: Path, discover: Discover) -> Iterator[Target]:
    files = list(_python_files(folder))
    if not files:
        raise InputError(
            explain(
                f"check: there is no Python file in `{folder}`",
                expected="a folder with files whose names end in .py",
                got="none, in it or below it",
            )
        )
    for path in files:
        try:
            source = read_source(path)
        except InputError as error:
            yield _missing(str(path), error)
            continue
        tree = _parse(source)
        if not isinstance(tree, Broken):
            yield from (Target(str(path), name, source) for name in discover(source))
        elif _ATTENTION.search(source):
            yield Target(str(path), "", source, tree)


def _missing(text: str, error: InputError) -> Target:
    """Return a target that says in a line why it is not to be found."""
    first, *rows = str(error).splitlines()
    parts = dict(row.split(maxsplit=1) for row in rows if len(row.split(maxsplit=1)) == 2)
    why, got = first.removeprefix("check: "), parts.get("got", "")
    why += f": {got}" if f"`{got}`" not in why else ""
    if "help" in parts:
        why += f"; {parts['help']}"
    place, colon, entry = text.rpartition(":")
    path, entry = (place, entry) if colon and entry.isidentifier() else (text, "")
    return Target(path, entry, "", Broken(why, is_read=False))


def _python_files(folder: Path) -> Iterator[Path]:
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if name not in _SKIPPED
            and not name.startswith(".")
            and not os.path.exists(os.path.join(base, name, "pyvenv.cfg"))
        )
        yield from (Path(base, name) for name in sorted(names) if name.endswith(".py"))


def _parse(source: str) -> ast.Module | Broken:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        return Broken(str(error.msg), error.lineno or 1, max(error.offset or 1, 1))
    except (ValueError, RecursionError, MemoryError) as error:  # null bytes; nesting
        return Broken(str(error) or "nested too deeply")


def _defined(texts: Sequence[str]) -> str:
    for text in texts:
        if os.path.isfile(text):
            tree = _parse(read_source(text))
            if isinstance(tree, ast.Module):
                return some(defined(tree))
    return ""


def _near_files(path: Path) -> str | None:
    try:
        names = [n for n in os.listdir(path.parent) if n.endswith(".py") and n != path.name]
    except OSError:
        return f"there is no folder `{path.parent}`"
    near = difflib.get_close_matches(path.name, names, 3, 0.5)
    shown = " or ".join(f"`{path.parent / name}`" for name in near)
    return f"did you mean {shown}?" if near else None


def _unreadable(verb: str, path: str | Path, expected: str, got: str) -> InputError:
    return InputError(explain(f"{verb}: `{path}` cannot be read", expected=expected, got=got))


def _discover(source: str) -> Iterable[str]:
    # Late, so that a named target needs none of it.
    from regard.check.roles.discover import discover_in  # noqa: PLC0415

    return discover_in(source)
