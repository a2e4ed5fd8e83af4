"""The targets of ``[tool.regard]`` as pytest collects them: a file, a target, a test a rule."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from regard.check.plugin.suite import RuleTest, Suite
from regard.check.rules import Selection
from regard.check.settings import Settings, read_settings
from regard.check.target import Target, find_targets
from regard.errors import RegardError

__all__ = ["collect"]


class _File(pytest.File):
    """A file with targets."""

    targets: Sequence[Target]
    settings: Settings

    def collect(self) -> Iterator["_Target"]:
        """Yield the targets."""
        for target in self.targets:
            made = _Target.from_parent(self, name=target.entry or "file")
            made.suite = Suite(
                target,
                flags=self.settings.flags(),
                selection=Selection.of(self.settings.select, self.settings.ignore),
            )
            yield made


class _Target(pytest.Collector):
    """A target with its tests."""

    suite: Suite

    def collect(self) -> Iterator["_Rule"]:
        """Yield one test a rule."""
        for test in self.suite.tests:
            made = _Rule.from_parent(self, name=str(test))
            made.test = test
            yield made


class _Rule(pytest.Item):
    """One rule asked of one target."""

    test: RuleTest

    def runtest(self) -> None:
        """Ask."""
        self.test()

    def reportinfo(self) -> tuple[Path, None, str]:
        """Name the test in the report of its failure."""
        return self.path, None, f"{self.test.suite.target.name} {self.name}"


def collect(session: pytest.Session) -> list[pytest.File]:
    """Return the files with the project's targets.

    Raises
    ------
    pytest.UsageError
        No target is named, or the settings are wrong; a target that does not exist fails
        as a test.
    """
    try:
        settings = read_settings(session.config.rootpath)
        if not settings.targets:
            raise pytest.UsageError(
                "--regard: name what to check, as targets = ['decoder.py:attend'] under "
                "[tool.regard] in pyproject.toml"
            )
        targets, _ = find_targets(settings.targets, each=True)
    except RegardError as error:
        raise pytest.UsageError(str(error)) from None
    by_file: dict[str, list[Target]] = {}
    for target in targets:
        by_file.setdefault(target.path, []).append(target)
    files: list[pytest.File] = []
    for path, group in by_file.items():
        file = _File.from_parent(session, path=Path(path).absolute())
        file.targets, file.settings = group, settings
        files.append(file)
    return files
