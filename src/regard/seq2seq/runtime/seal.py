"""A check sum inside an ONNX file, of everything else in the file.

onnxruntime runs a file whose weights were changed without a word. The sum stands among the
file's metadata, where other programs pass over it: the entry ``sha256``, in hexadecimal, of the
file's bytes with zeros in its own place.
"""

import hashlib
import re

__all__ = ["UNSEALED", "has_whole_seal", "sealed"]

UNSEALED = {"sha256": "0" * 64}
"""The entry that has to be among a file's metadata before it is sealed."""

# As protocol buffers write it: field 1 with 6 bytes, field 2 with 64.
_ENTRY = re.compile(rb"\x0a\x06sha256\x12\x40([0-9a-f]{64})")


def sealed(data: bytes) -> bytes:
    """Return a file with the sum in the place that was kept for it."""
    start, end = _place(data)
    return data[:start] + hashlib.sha256(data).hexdigest().encode() + data[end:]


def has_whole_seal(data: bytes) -> bool:
    """Return whether a file has a sum, and it is that of its bytes."""
    try:
        start, end = _place(data)
    except ValueError:
        return False
    blank = data[:start] + UNSEALED["sha256"].encode() + data[end:]
    return data[start:end] == hashlib.sha256(blank).hexdigest().encode()


def _place(data: bytes) -> tuple[int, int]:
    """Return from where to where the sum stands: the last place that looks like it."""
    found = list(_ENTRY.finditer(data))
    if not found:
        raise ValueError("no check sum")
    return found[-1].span(1)
