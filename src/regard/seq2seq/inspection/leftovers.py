"""What other programs leave in texts: words for nothing, entities of HTML, quotes of CSV."""

import re

__all__ = ["leftovers"]

# As databases, spreadsheets and data frames write a missing value.
_NOTHING = frozenset(("\\N", "NULL", "NaN", "<NA>", "#N/A", "#NAME?", "#REF!", "#VALUE!"))
_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,30}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});")


def leftovers(text: str) -> str | None:
    """Return the code of what was left in a text, or None.

    Parameters
    ----------
    text : str
        Not empty.

    Examples
    --------
    >>> leftovers("Tom &amp; Jerry"), leftovers('"the ""last"" one"'), leftovers("R&D; so")
    ('entity', 'csv-quotes', None)
    """
    if text in _NOTHING:
        return "missing"
    if "&" in text and _ENTITY.search(text):
        return "entity"
    # A sentence may stand in quotes; a quote written twice is how CSV has one inside.
    if text[0] == '"' == text[-1] and '""' in text[1:-1]:
        return "csv-quotes"
    return None
