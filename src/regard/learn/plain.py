"""A lesson for a terminal: equations and pictures as words."""

import re

__all__ = ["plain"]

_SYMBOLS = {
    r"\top": "T", r"\tanh": "tanh", r"\exp": "exp", r"\alpha": "α", r"\sum": "Σ", r"\sqrt": "√",
    r"\in": "∈", r"\cdot": "·", r"\times": "×", r"\dots": "...", r"\mid": "|", r"\log": "log",
    r"\ge": "≥", r"\le": "≤", r"\cap": "∩", r"\quad": "   ", r"\qquad": "   ", r"\,": " ",
    r"\{": "{", r"\}": "}", r"\left": "", r"\right": "", r"\;": " ",
}  # fmt: skip
_NAMED = re.compile(r"\\(?:mathrm|operatorname|text|mathbb)\{([^{}]*)\}")
_ACCENT = re.compile(r"\\(tilde|bar|hat)\s*\{?(\w)\}?")
_FRACTION = re.compile(r"\\frac\{((?:[^{}]|\{[^{}]*\})*)\}\{((?:[^{}]|\{[^{}]*\})*)\}")
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)")
_MARKS = {"tilde": "\u0303", "bar": "\u0304", "hat": "\u0302"}
_DISPLAY = re.compile(r"^\$\$\n(.*?)\n\$\$$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"\$([^$\n]+)\$")
_PICTURE = re.compile(r"^!\[([^]]*)\]\([^)]*\)$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^```\{\w+\}[^\n]*\n.*?^```\n+", re.MULTILINE | re.DOTALL)
_INFO = re.compile(r"^```(python|console) .*$", re.MULTILINE)


def plain(text: str) -> str:
    r"""Return Markdown in which no equation needs to be drawn.

    Parameters
    ----------
    text : str
        A lesson.

    Returns
    -------
    text : str
        Pictures are told by their words; what needs a browser is left out.

    Examples
    --------
    >>> print(plain(r"so $e_{t,i} = v_a^\top \tanh(q)$"))
    so e_t,i = v_a^T tanh(q)
    """
    text = _DIRECTIVE.sub("", text)
    text = _INFO.sub(r"```\1", text)
    text = _PICTURE.sub(r"*Picture: \1*", text)
    text = _DISPLAY.sub(lambda match: f"```text\n{_words(match[1])}\n```", text)
    return _INLINE.sub(lambda match: _words(match[1]), text)


def _words(tex: str) -> str:
    tex = _NAMED.sub(r"\1", tex)
    tex = _ACCENT.sub(lambda match: match[2] + _MARKS[match[1]], tex)
    tex = _FRACTION.sub(r"(\1) / (\2)", tex)
    tex = _COMMAND.sub(lambda match: _SYMBOLS.get(match[0], match[0]), tex)
    return re.sub(r"(?<=[_^√])\{([^{}]*)\}", r"\1", tex)
