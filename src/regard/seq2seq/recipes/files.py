"""Finding a data set's files in a directory of the user's.

Data whose licence is not stated are not shipped. A user who has them names the directory: a
copy of the repository they come from, an unpacked archive, one that holds the archive, or the
archive itself.
"""

import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from regard.errors import InputError, explain

__all__ = ["located"]

_ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")
_LARGEST = 256 << 20  # bytes of one member of an archive


@contextmanager
def located(
    data_dir: str | Path | None,
    names: Sequence[str],
    *,
    what: str,
    home: str,
    hint: str | None = None,
) -> Iterator[dict[str, Path]]:
    """Yield where the files are, for as long as the block lasts.

    Parameters
    ----------
    data_dir : path or None
        Searched with its subdirectories, then the tar archives in it; or one such archive.
        None: it was not given.
    names : sequence of str
        File names that all have to be there, each once.
    what : str
        The data set, for messages.
    home : str
        Where the data can be had.
    hint : str, optional
        Of several files of one name, those count whose path below the directory, or whose
        archive's name, contains this: another year's data have files of the same names.

    Raises
    ------
    InputError
        A file is missing or there twice, the directory is none, or an archive is damaged.
    """
    expected = f"a directory that holds {', '.join(names)}"
    if data_dir is None:
        raise InputError(
            explain(
                f"{what}: the data are not shipped with regard",
                expected=expected,
                got="no --data-dir",
                because="their licence is not stated",
                help=f"get them from {home} and name the directory with --data-dir",
            )
        )
    root = Path(data_dir)
    is_archive = root.name.endswith(_ARCHIVES) and root.is_file()
    if not (root.is_dir() or is_archive):
        raise InputError(
            explain(
                f"{root}: this is neither a directory nor a tar archive",
                expected=expected,
                got="a file" if root.exists() else "nothing there",
                help=f"the data of {what} are at {home}",
            )
        )
    with tempfile.TemporaryDirectory(prefix="regard-") as made:
        found: dict[str, dict[str, Path]] = {name: {} for name in names}
        for path in sorted(root.rglob("*")):
            if path.name in found and path.is_file():
                found[path.name][str(path.relative_to(root))] = path
        if not any(found.values()):
            for archive in [root] if is_archive else sorted(root.rglob("*")):
                if archive.name.endswith(_ARCHIVES) and archive.is_file():
                    _unpack(archive, found, Path(made))
        if hint is not None:
            found = {name: _hinted(paths, hint) for name, paths in found.items()}
        yield {name: _one(name, paths, root, expected, home) for name, paths in found.items()}


def _unpack(archive: Path, found: dict[str, dict[str, Path]], made: Path) -> None:
    """Write the members that are looked for; nothing else of the archive is touched."""
    try:
        with tarfile.open(archive) as opened:
            for member in opened:
                name = Path(member.name).name
                if name not in found or not member.isfile() or member.size > _LARGEST:
                    continue
                stream = opened.extractfile(member)
                assert stream is not None  # of a file
                # Under our own name: a member's path is not to be trusted.
                copy = made / f"{len(found[name])}-{name}"
                copy.write_bytes(stream.read())
                found[name][f"{archive.name}: {member.name}"] = copy
    except (tarfile.TarError, EOFError, OSError) as error:
        raise InputError(
            explain(
                f"{archive}: the archive cannot be read",
                expected="a tar archive",
                got=str(error),
                help="get it again, or unpack it and name its directory",
            )
        ) from error


def _hinted(paths: dict[str, Path], hint: str) -> dict[str, Path]:
    wanted = {said: path for said, path in paths.items() if hint in said}
    return wanted if len(paths) > 1 and wanted else paths


def _one(name: str, paths: dict[str, Path], root: Path, expected: str, home: str) -> Path:
    if len(paths) == 1:
        return next(iter(paths.values()))
    if not paths:
        raise InputError(
            explain(
                f"{root}: {name} is not there",
                expected=expected,
                got=f"no {name}, neither as a file nor in a tar archive",
                help=f"the data are at {home}",
            )
        )
    raise InputError(
        explain(
            f"{root}: {name} is there {len(paths)} times",
            expected=expected,
            got=", ".join(list(paths)[:5]),
            help="name the directory, or the tar archive, that holds the right one",
        )
    )
