"""From ``model.py:case`` on a command line to a case."""

import sys

from regard.audit.protocol import Case, check_case
from regard.check.loading import Crash, load, prepare
from regard.check.target import import_folders, read_source
from regard.errors import InputError, RegardError, explain

__all__ = ["load_case"]

_FORM = "MODEL.py:name, where name is a case, or a function without arguments that makes one"


def load_case(target: str) -> Case:
    """Run a Python file and return the case in it.

    Parameters
    ----------
    target : str
        ``file.py:name``. What has no `predict` and can be called is called.

    Raises
    ------
    InputError
        There is no such file or name, the file fails, or what is there is no case.
    """
    path, colon, name = target.rpartition(":")
    if not (colon and path and name):
        raise InputError(explain(f"audit: `{target}` is no target", expected=_FORM, got=target))
    source = read_source(path, verb="audit")
    prepare(source)
    for folder in reversed(import_folders(path)):
        if folder not in sys.path:
            sys.path.insert(0, folder)
    loaded = load(source, path, name)
    if isinstance(loaded, Crash):
        raise _crashed(loaded, path, name)
    found = loaded.target
    if not hasattr(found, "predict") or isinstance(found, type):
        if not callable(found):
            return check_case(found, f"audit: {target}")
        try:
            found = found()
        except RegardError:
            raise
        except Exception as error:
            raise InputError(
                explain(
                    f"audit: {target}() failed",
                    expected="a function without arguments that returns a case",
                    got=f"{type(error).__name__}: {error}",
                )
            ) from error
    return check_case(found, f"audit: {target}")


def _crashed(crash: Crash, path: str, name: str) -> InputError:
    if crash.kind == "AttributeError" and crash.line == 1 and crash.message.startswith("no "):
        return InputError(
            explain(f"audit: `{path}` defines no `{name}`", expected=_FORM, got=name)
        )
    return InputError(
        explain(
            f"audit: {path} fails at line {crash.line}",
            expected="a file that Python can run",
            got=f"{crash.kind}: {crash.message}",
        )
    )
