"""Graphemes: a character together with the marks that stand on it.

What people take for one letter is often several code points even in form C: Devanagari and
Thai vowels, Arabic and Hebrew points, most letters of the phonetic alphabet with a diacritic,
emoji. The rules are the ones of Unicode's grapheme clusters that matter for text: combining
marks, joiners, variation selectors and skin tones go with what stands before them, a letter
behind a zero width joiner goes with it too, consonant, vowel and end of a Korean syllable stay
together, and regional indicators make pairs. Prefixes of some Brahmic scripts are left out.
"""

import unicodedata

__all__ = ["graphemes"]

_JOINER = "\u200d"
_EXTENDERS = frozenset((_JOINER, "\u200c", *map(chr, range(0x1F3FB, 0x1F400))))
_FLAGS = range(0x1F1E6, 0x1F200)
_LEADS, _VOWELS, _ENDS = range(0x1100, 0x1160), range(0x1160, 0x11A8), range(0x11A8, 0x1200)
_SYLLABLES = range(0xAC00, 0xD7A4)

_extends: dict[str, bool] = {}


def graphemes(text: str) -> list[str]:
    """Cut a text into characters with their marks; put together they are the text again.

    Parameters
    ----------
    text : str

    Examples
    --------
    >>> [len(symbol) for symbol in graphemes("o\u0303e")]
    [2, 1]
    """
    if text.isascii():
        return list(text)
    symbols: list[str] = []
    for character in text:
        if symbols and _goes_with(symbols[-1], character):
            symbols[-1] += character
        else:
            symbols.append(character)
    return symbols


def _goes_with(symbol: str, character: str) -> bool:
    last = symbol[-1]
    if _is_extender(character):
        return not last.isspace()
    if last == _JOINER:
        return len(symbol) > 1 and not character.isspace()
    code = ord(character)
    if code in _FLAGS:
        return len(symbol) == 1 and ord(last) in _FLAGS
    return (code in _VOWELS or code in _ENDS or code in _LEADS or code in _SYLLABLES) and (
        _goes_on(ord(last), code)
    )


def _goes_on(last: int, code: int) -> bool:
    """Return whether two parts of a Korean syllable stand in one."""
    if last in _LEADS:
        return code in _LEADS or code in _VOWELS or code in _SYLLABLES
    open_end = last in _VOWELS or (last in _SYLLABLES and (last - 0xAC00) % 28 == 0)
    if open_end and code in _VOWELS:
        return True
    return code in _ENDS and (open_end or last in _ENDS or last in _SYLLABLES)


def _is_extender(character: str) -> bool:
    try:
        return _extends[character]
    except KeyError:
        known = character in _EXTENDERS or unicodedata.category(character).startswith("M")
        return _extends.setdefault(character, known)
