"""Regression tests: a finding turned into a pytest file that needs only the user's module."""

from regard.check.regress.write import RegressionTest, write_test

__all__ = ["RegressionTest", "write_test"]
