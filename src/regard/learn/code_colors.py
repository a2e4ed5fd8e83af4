"""Colours of code on a light page, each readable on the ground of code blocks."""

from pygments.style import Style
from pygments.token import Comment, Keyword, Name, Number, Operator, String

from regard.alignment.colors import INK, QUIET

__all__ = ["Light"]


class Light(Style):  # type: ignore[misc]  # Pygments has no types
    """A contrast of 4.5 : 1 at least, which Pygments' default style does not keep."""

    styles = {  # noqa: RUF012 - Pygments' own form
        Comment: f"italic {QUIET}",
        Keyword: "#6f3cc4",
        Name.Builtin: "#8a3f00",
        Name.Class: "bold #0a4a8f",
        Name.Decorator: "#6f3cc4",
        Name.Function: "bold #0a4a8f",
        Number: "#0a58a8",
        Operator: INK,
        Operator.Word: "#6f3cc4",
        String: "#0a5c36",
    }
