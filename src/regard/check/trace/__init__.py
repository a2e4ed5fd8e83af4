"""Every tensor of one run, where it was made and from what: see :func:`record`."""

from regard.check.trace.records import Node, Site, SizeRead, Span, Trace
from regard.check.trace.run import record

__all__ = ["Node", "Site", "SizeRead", "Span", "Trace", "record"]
