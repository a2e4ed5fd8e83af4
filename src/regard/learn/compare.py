"""Whether a lesson says what its blocks did."""

import re

from regard.learn.execute import Ran

__all__ = ["claimed", "difference", "unexplained_numbers"]

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_FENCED = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
_DECIMAL = re.compile(r"(?<![\w.:/-])\d+\.\d+(?![\w.]*\.\d)")
_CITED = re.compile(
    r"(?:sections?|appendix|eqs?\.|equations?|arXiv:|Python|PyTorch|and|to)\s*$|\($",
    re.IGNORECASE,
)


def claimed(ran: Ran) -> str:
    """Return what the lesson says that a block prints."""
    if ran.block.language == "console":
        return ran.block.body
    return ran.output.body if ran.output else ""


def difference(ran: Ran) -> str:
    """Return how a block's output differs from what the lesson says; "" if it does not.

    With ``within=W`` the texts must be the same but for numbers, which may differ by W.
    """
    said, printed = claimed(ran), ran.printed
    if said.rstrip() == printed.rstrip():
        return ""
    reach = ran.block.options.get("within")
    if reach is not None and _NUMBER.sub("#", said) == _NUMBER.sub("#", printed):
        far = [
            (a, b)
            for a, b in zip(_NUMBER.findall(said), _NUMBER.findall(printed), strict=True)
            if abs(float(a) - float(b)) > float(reach) + 1e-9
        ]
        if not far:
            return ""
    return f"line {ran.block.first + 1} prints\n{printed}\nand the lesson says\n{said}"


def unexplained_numbers(text: str) -> list[str]:
    """Return decimal numbers of a lesson's prose that no block of it holds.

    Numbers of sections and identifiers of papers are left out.
    """
    blocks = "".join(match[0] for match in _FENCED.finditer(text))
    prose = _FENCED.sub("", text)
    return [
        match[0]
        for match in _DECIMAL.finditer(prose)
        if match[0] not in blocks and not _CITED.search(prose[: match.start()])
    ]
