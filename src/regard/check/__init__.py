"""`regard check`: find the attention bug that does not crash, blame its line, prove the fix.

The package is itself callable: ``regard.check(attend)`` is :func:`regard.check.api.check`.
"""

import sys
import types
from typing import Any

__all__ = ["check_source"]


class _Callable(types.ModuleType):
    """A module that can be called, so that ``regard.check`` is both package and verb."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from regard.check.api import check  # noqa: PLC0415 - loads NumPy

        return check(*args, **kwargs)


def __getattr__(name: str) -> Any:
    if name == "check_source":
        from regard.check.check import check_source  # noqa: PLC0415

        return check_source
    raise AttributeError(f"module 'regard.check' has no attribute {name!r}")


sys.modules[__name__].__class__ = _Callable
