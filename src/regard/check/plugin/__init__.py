"""pytest: ``pytest --regard`` checks the targets of ``[tool.regard]``, one test a rule.

pytest loads this module at every start, so it imports nothing; a run without ``--regard``
never comes further than here.
"""

from collections.abc import Generator
from typing import Any

__all__ = ["pytest_addoption", "pytest_make_collect_report"]


def pytest_addoption(parser: Any) -> None:
    """Add ``--regard``."""
    parser.getgroup("regard").addoption(
        "--regard",
        action="store_true",
        help="also check the attention named by `targets` in [tool.regard], one test a rule",
    )


def pytest_make_collect_report(collector: Any) -> Generator[None, Any, Any]:
    """Add the targets to what pytest finds in the folders it was given."""
    report = yield
    is_session = collector is collector.session
    if is_session and report.passed and collector.config.getoption("--regard"):
        from regard.check.plugin.collect import collect  # noqa: PLC0415 - only when asked for

        report.result += collect(collector)
    return report


# What pytest.hookimpl(wrapper=True) does; the package is also imported where pytest is not.
pytest_make_collect_report.pytest_impl = {"wrapper": True}  # type: ignore[attr-defined]
