"""From failing relations to findings: one a cause, at one line, about one tensor."""

from regard.check.cause.compose import causes

__all__ = ["causes"]
