r"""The papers' equations as MathML, which browsers draw without a script or a font of ours.

A small part of LaTeX is read: what the equations of this project's docstrings and lessons use.
Anything else is refused by name, so that no page shows a command in place of a symbol.
"""

import re
from html import escape

__all__ = ["mathml"]

_SYMBOLS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ϵ", "varepsilon": "ε",
    "theta": "θ", "lambda": "λ", "mu": "μ", "sigma": "σ", "tau": "τ", "phi": "φ", "Delta": "Δ",
    "psi": "ψ", "kappa": "κ",
    "top": "⊤", "infty": "∞", "ell": "ℓ", "emptyset": "∅", "dots": "…", "ldots": "…",
}  # fmt: skip
_OPERATORS = {
    "cdot": "·", "times": "×", "circ": "∘", "cap": "∩", "cup": "∪", "in": "∈", "ge": "≥",
    "le": "≤", "ne": "≠", "sim": "∼", "approx": "≈", "propto": "∝", "to": "→", "mid": "∣",
    "lVert": "‖", "rVert": "‖", "lvert": "|", "rvert": "|", "sum": "∑", "prod": "∏",
    "lbrace": "{", "rbrace": "}", "{": "{", "}": "}", "pm": "±", "odot": "⊙", "cdots": "⋯",
    "lfloor": "⌊", "rfloor": "⌋", "leftarrow": "←", "rightarrow": "→", "_": "_",
}  # fmt: skip
_SPACED = frozenset("=<>∈≥≤≠∼≈∝→∣←×∩∪")
_FUNCTIONS = {"tanh", "exp", "log", "max", "min", "arg", "softmax"}
_WITH_LIMITS = {"sum", "prod", "max", "min"}
_SPACES = {"quad": "1em", "qquad": "2em", ",": "0.17em", ";": "0.28em", " ": "0.25em", "!": ""}
_ACCENTS = {
    "tilde": "~", "hat": "^", "bar": "¯", "vec": "→",
    "overrightarrow": "→", "overleftarrow": "←",
}  # fmt: skip
_LARGER = {"big": "1.2em", "Big": "1.6em", "bigl": "1.2em", "bigr": "1.2em"} | {
    "Bigl": "1.6em",
    "Bigr": "1.6em",
}
_TOKEN = re.compile(r"\\\\|\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\s+|.", re.DOTALL)


def mathml(tex: str, *, display: bool = False) -> str:
    r"""Return an equation as a ``<math>`` element.

    Parameters
    ----------
    tex : str
        LaTeX without dollar signs. ``&`` and ``\\`` make aligned lines.
    display : bool
        A line of its own, with limits below and above sums.

    Returns
    -------
    element : str
        With the LaTeX as its ``alttext``.

    Raises
    ------
    ValueError
        A command is not known, or a brace has no partner.

    Examples
    --------
    >>> mathml(r"h_i")
    '<math alttext="h_i"><mrow><msub><mi>h</mi><mi>i</mi></msub></mrow></math>'
    """
    shown = ' display="block"' if display else ""
    body = _Parser(tex).whole()
    return f'<math{shown} alttext="{escape(" ".join(tex.split()))}">{body}</math>'


class _Parser:
    """Reads from left to right; each method returns MathML and stands behind what it read."""

    def __init__(self, tex: str) -> None:
        self._tex = tex
        self._tokens = _TOKEN.findall(tex.strip())
        self._at = 0
        self._binary = False  # whether something stands before, in the same row

    def whole(self) -> str:
        rows = self._table(end="")
        if self._peek():
            raise self._wrong(f"{self._peek()!r} has no partner")
        if len(rows) == 1 and len(rows[0]) == 1:
            return rows[0][0]
        lines = "".join(
            "<mtr>" + "".join(f"<mtd{_side(at)}>{cell}</mtd>" for at, cell in enumerate(row))
            + "</mtr>"
            for row in rows
        )  # fmt: skip
        return f'<mtable displaystyle="true" rowspacing="0.4em">{lines}</mtable>'

    def _table(self, end: str) -> list[list[str]]:
        rows = [[self._row(end)]]
        while self._peek() in {"&", "\\\\"}:
            if self._take() == "&":
                rows[-1].append(self._row(end))
            else:
                rows.append([self._row(end)])
        return rows

    def _row(self, end: str) -> str:
        parts: list[str] = []
        while (token := self._peek()) not in {end, "", "&", "\\\\", "}", "\\right"}:
            if token == "\\textstyle":
                self._take()
                rest = self._row(end)
                parts.append(f'<mstyle displaystyle="false">{rest}</mstyle>')
                break
            self._binary = bool(parts) and not parts[-1].endswith(
                ("(</mo>", "[</mo>", "=</mo>")
            )
            parts.append(self._scripted())
        return f"<mrow>{''.join(parts)}</mrow>"

    def _scripted(self) -> str:
        limits = self._peek()[1:] in _WITH_LIMITS and self._peek().startswith("\\")
        base = self._atom()
        while self._peek() == "'":
            self._take()
            base = f"<mrow>{base}<mo>′</mo></mrow>"
        below = above = ""
        while (self._peek() == "_" and not below) or (self._peek() == "^" and not above):
            if self._take() == "_":
                below = self._atom()
            else:
                above = self._atom()
        if not below and not above:
            return base
        kind = ("under" if below else "") + ("over" if above else "")
        if not limits:
            kind = ("sub" if below else "") + ("sup" if above else "")
        return f"<m{kind}>{base}{below}{above}</m{kind}>"

    def _atom(self) -> str:
        token = self._take()
        if token == "{":
            inner = self._row("}")
            self._expect("}")
            return inner
        if token.startswith("\\"):
            return self._command(token[1:])
        if token[:1].isdigit():
            return f"<mn>{token}</mn>"
        if token.isalpha():
            return f"<mi>{token}</mi>"
        if token in {"", "^", "_", "}"}:
            raise self._wrong(f"{token!r} stands where a symbol must" if token else "it ends")
        return _operator({"-": "−", "*": "∗"}.get(token, token), binary=self._binary)

    def _command(self, name: str) -> str:  # noqa: PLR0911 - one return a kind of command
        if name in _SPACES:
            width = _SPACES[name]
            return f'<mspace width="{width}" style="width: {width}"/>' if width else ""
        if name in _FUNCTIONS:
            limits = ' movablelimits="true"' if name in _WITH_LIMITS else ""
            kind = "mo" if limits else "mi"
            return f'<{kind}{limits} class="upright">{name}</{kind}>'
        if name in _WITH_LIMITS:
            return f'<mo movablelimits="true" class="large">{_OPERATORS[name]}</mo>'
        if name in _OPERATORS:
            return _operator(_OPERATORS[name], binary=True)
        if name in _SYMBOLS:
            variant = "" if _SYMBOLS[name].isalpha() else ' mathvariant="normal"'
            return f"<mi{variant}>{_SYMBOLS[name]}</mi>"
        if name in _ACCENTS:
            return f'<mover accent="true">{self._atom()}<mo>{_ACCENTS[name]}</mo></mover>'
        if name in _LARGER:
            size, mark = _LARGER[name], self._take().removeprefix("\\")
            shown = escape(_OPERATORS.get(mark, mark))
            return f'<mo minsize="{size}" style="font-size: {size}">{shown}</mo>'
        if name in {"mathrm", "operatorname", "text"}:
            return self._upright(name)
        if name == "mathbb":
            letter = self._upright("text")
            return letter.replace("mtext", "mi").replace("R", "ℝ")
        if name == "frac":
            return f"<mfrac>{self._atom()}{self._atom()}</mfrac>"
        if name == "sqrt":
            return f"<msqrt>{self._atom()}</msqrt>"
        if name == "left":
            return self._fenced()
        raise self._wrong(f"\\{name} is not known")

    def _fenced(self) -> str:
        left = self._take().removeprefix("\\")
        inner = self._row("\\right")
        self._expect("\\right")
        right = self._take().removeprefix("\\")
        marks = [
            "" if mark == "." else f"<mo fence='true'>{_OPERATORS.get(mark, mark)}</mo>"
            for mark in (left, right)
        ]
        return f"<mrow>{marks[0]}{inner}{marks[1]}</mrow>"

    def _upright(self, name: str) -> str:
        self._expect("{")
        # Spaces matter here alone, so none is passed over.
        text = ""
        while self._at < len(self._tokens) and self._tokens[self._at] != "}":
            text += self._tokens[self._at].replace("\\_", "_")
            self._at += 1
        self._expect("}")
        if name == "text":
            return f"<mtext>{escape(text.replace(' ', chr(160)))}</mtext>"
        variant = ' mathvariant="normal"' if len(text) == 1 else ' class="upright"'
        return f"<mi{variant}>{escape(text)}</mi>"

    def _peek(self) -> str:
        while self._at < len(self._tokens) and self._tokens[self._at].isspace():
            self._at += 1
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, token: str) -> None:
        if self._take() != token:
            raise self._wrong(f"{token!r} is missing")

    def _wrong(self, what: str) -> ValueError:
        return ValueError(f"mathml(): {what} in {self._tex!r}")


def _operator(mark: str, *, binary: bool) -> str:
    kind = ""
    # A sign at the beginning stands close to its number.
    if mark in _SPACED or (binary and mark in "+−"):
        kind = ' class="spaced"'
    elif mark in ",;":
        kind = ' class="comma"'
    # Brackets and bars grow only where \\left and \\right say so.
    return f'<mo stretchy="false"{kind}>{escape(mark)}</mo>'


def _side(column: int) -> str:
    # As LaTeX's aligned: right of the first mark is read on from it.
    side = "right" if column % 2 == 0 else "left"
    return f' style="text-align: {side}; padding: 0.2em 0.15em"'
