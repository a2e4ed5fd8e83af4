"""``--fix``: put proven fixes into the file, and only those, and only if nobody else wrote.

What is written is the text that was proven: the file's encoding, line ends, rights and links
stay as they are.
"""

import codecs
import difflib
import hashlib
import io
import os
import re
import tokenize
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.check.finding import Edit, Finding, Report
from regard.errors import InputError, explain

__all__ = [
    "Change",
    "Write",
    "apply_edits",
    "plan_fixes",
    "save_patch",
    "unified",
    "write_changes",
]

Write = Callable[[Path, bytes], None]
"""Replaces a file's content as a whole, or leaves it as it was."""


@dataclass(frozen=True)
class Change:
    """What becomes of one file.

    Parameters
    ----------
    path : str
        As the user wrote it.
    before, after : str
        The texts, with their own line ends.
    data_before, data : bytes
        The same, encoded.
    applied : tuple of Finding
        Whose fixes are in the new text.
    left : tuple of Finding
        Whose fixes overlap one of those, or make the same place another text: run again.
    """

    path: str
    before: str
    after: str
    data_before: bytes
    data: bytes
    applied: tuple[Finding, ...]
    left: tuple[Finding, ...] = ()

    def diff(self, base: str = ".") -> str:
        """Return the unified diff, as ``git apply`` takes it in the folder `base`."""
        name = self._name(base)
        return unified(self.before, self.after, f"a/{name}", f"b/{name}")

    def patch(self, base: str = ".") -> bytes:
        """Return the diff of the bytes, whatever the file's encoding."""
        # In Latin-1 every byte is a character and comes back as itself.
        name = self._name(base).encode("utf-8", "surrogateescape").decode("latin-1")
        before, after = self.data_before.decode("latin-1"), self.data.decode("latin-1")
        return unified(before, after, f"a/{name}", f"b/{name}").encode("latin-1")

    def _name(self, base: str) -> str:
        name = os.path.relpath(os.path.realpath(self.path), os.path.realpath(base))
        return name.replace(os.sep, "/")


def plan_fixes(reports: Iterable[Report]) -> list[Change]:
    """Plan what the proven fixes of some reports make of their files; write nothing.

    Returns
    -------
    changes : list of Change
        One for each file with a proven fix of a finding that is not suppressed.

    Raises
    ------
    InputError
        A file changed since it was checked, cannot be read, or cannot hold the new text.
    """
    files: dict[str, list[Report]] = {}
    for report in reports:
        if any(_is_due(finding) for finding in report.findings):
            files.setdefault(os.path.realpath(report.path), []).append(report)
    return [_plan(group) for group in files.values()]


def write_changes(changes: Sequence[Change], write: Write) -> None:
    """Write the new texts.

    Raises
    ------
    InputError
        A file has changed meanwhile, or may not be written; the later ones are untouched.
    """
    for change in changes:
        path = Path(os.path.realpath(change.path))  # through links, so that a link stays one
        if _bytes(change.path) != change.data_before:
            raise _has_changed(change.path)
        if not os.access(path, os.W_OK):
            raise InputError(
                explain(
                    f"check: `{change.path}` may not be written",
                    expected="a file that is yours to write",
                    got="a read-only file",
                    help="leave --fix out and apply the diff by hand",
                )
            )
        write(path, change.data)


def save_patch(changes: Sequence[Change], write: Write) -> tuple[Path, str]:
    """Write the diffs into ``.regard/`` of this folder.

    Returns
    -------
    path : Path
        The patch; ``git -C base apply -R path`` undoes the changes.
    base : str
        The folder it is to be applied in: this one, or the nearest that has all the files.

    Raises
    ------
    InputError
        The folder cannot be made, or the file not be written.
    """
    files = [os.path.realpath(change.path) for change in changes]
    here = os.path.realpath(".")
    base = os.path.commonpath([here, *map(os.path.dirname, files)])
    base = "." if base == here else base
    data = b"".join(change.patch(base) for change in changes)
    folder = Path(".regard")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise InputError(
            explain(
                "check: the patch cannot be saved",
                expected="a folder .regard here",
                got=(error.strerror or str(error)).lower(),
            )
        ) from None
    ignored = folder / ".gitignore"
    if not ignored.exists():
        write(ignored, b"*\n")
    path = folder / f"fix-{hashlib.sha256(data).hexdigest()[:10]}.patch"
    write(path, data)
    return path, base


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return a text with some spans replaced; new lines end as the first line of the text.

    Raises
    ------
    ValueError
        A span is outside the text, ends before it begins, or overlaps another.
    """
    starts = [0, *(found.end() for found in re.finditer(r"\r\n|\r|\n", text))]
    ends = [*starts[1:], len(text)]
    newline = re.search(r"\r\n|\r|\n", text)
    end_of_line = newline.group() if newline else "\n"

    def offset(line: int, column: int) -> int:
        if not 1 <= line <= len(starts):
            raise ValueError(f"there is no line {line}")
        at = starts[line - 1] + column - 1
        if column < 1 or at > ends[line - 1]:
            raise ValueError(f"line {line} has no column {column}")
        return at

    spans = sorted(
        (offset(e.line, e.column), offset(e.end_line, e.end_column), e.text) for e in edits
    )
    out, at = [], 0
    for begin, end, new in spans:
        if begin < at or end < begin:
            raise ValueError("edits overlap")
        out += [text[at:begin], re.sub(r"\r\n|\r|\n", lambda _: end_of_line, new)]
        at = end
    return "".join([*out, text[at:]])


def unified(before: str, after: str, name_before: str, name_after: str) -> str:
    """Return a unified diff that keeps each line's own end, as ``git apply`` takes it."""
    # splitlines() would also split at form feeds, which end no line of a patch.
    # A tab ends a name that holds spaces.
    name_before, name_after = (n + "\t" * (" " in n) for n in (name_before, name_after))
    old, new = (re.findall(r"[^\n]*\n|[^\n]+\Z", text) for text in (before, after))
    lines = []
    for line in difflib.unified_diff(old, new, name_before, name_after):
        lines.append(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")
    return "".join(lines)


def _is_due(finding: Finding) -> bool:
    fix = finding.fix
    return not finding.suppressed and fix is not None and fix.status == "proven"


def _plan(reports: Sequence[Report]) -> Change:
    path = reports[0].path
    data = _bytes(path)
    text, encode = _decoded(data, path)
    sources = {report.source for report in reports}
    if sources != {re.sub(r"\r\n?", "\n", text)}:
        raise _has_changed(path)
    chosen: list[Edit] = []
    applied: list[Finding] = []
    left: list[Finding] = []
    for finding in (f for report in reports for f in report.findings if _is_due(f)):
        assert finding.fix is not None  # as _is_due says
        # Two targets may find one cause: the same edit is made once.
        new = [edit for edit in finding.fix.edits if edit not in chosen]
        try:
            apply_edits(text, [*chosen, *new])
        except ValueError:
            left.append(finding)
            continue
        chosen += new
        applied.append(finding)
    after = apply_edits(text, chosen)
    return Change(path, text, after, data, encode(after), tuple(applied), tuple(left))


def _bytes(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            explain(
                f"check: `{path}` cannot be read any more",
                expected="the file that was checked",
                got=(os.strerror(error.errno) if error.errno else str(error)).lower(),
            )
        ) from None


def _decoded(data: bytes, path: str) -> tuple[str, Callable[[str], bytes]]:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)  # utf-8-sig takes the mark away
    except (SyntaxError, UnicodeDecodeError, LookupError):
        raise _has_changed(path) from None
    mark = codecs.BOM_UTF8 if encoding == "utf-8-sig" else b""

    def encode(new: str) -> bytes:
        try:
            return mark + new.encode("utf-8" if mark else encoding)
        except UnicodeEncodeError as error:
            raise InputError(
                explain(
                    f"check: the fix does not fit the encoding of `{path}`",
                    expected=f"text that {encoding} can hold",
                    got=repr(error.object[error.start : error.end]),
                )
            ) from None

    return text, encode


def _has_changed(path: str) -> InputError:
    return InputError(
        explain(
            f"check: `{path}` changed while it was checked",
            expected="the text that the fix was proven on",
            got="another text",
            help="run the command again",
        )
    )
