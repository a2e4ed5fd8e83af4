"""Characters that are seldom meant: what cannot be seen, and letters of another script."""

import re
import unicodedata

__all__ = ["damaged_encoding", "describe", "scripts", "unseen_characters"]

_SCRIPTS = frozenset(
    """
    LATIN GREEK CYRILLIC ARMENIAN HEBREW ARABIC SYRIAC THAANA NKO DEVANAGARI BENGALI GURMUKHI
    GUJARATI ORIYA TAMIL TELUGU KANNADA MALAYALAM SINHALA THAI LAO TIBETAN MYANMAR GEORGIAN
    ETHIOPIC CHEROKEE KHMER MONGOLIAN TIFINAGH COPTIC GOTHIC GLAGOLITIC JAVANESE BALINESE
    """.split()  # noqa: SIM905 - a list of literals reads worse
)
# They are written together.
_EAST_ASIAN = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO")
# The phonetic alphabet borrows these Greek letters.
_NEUTRAL = frozenset("\u03b2\u03b8\u03c7")
_ALPHABETS = frozenset(("LATIN", "GREEK", "CYRILLIC"))
_JOINERS = frozenset("\u200c\u200d")  # spelling, in scripts that join letters, and in emoji
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\ufffc")
_LATIN = re.compile("[A-Za-z]")

# What UTF-8 looks like when it was read as Latin-1 or Windows-1252: a lead, then the rest.
_REST = "".join(
    {chr(code) for code in range(0x80, 0xC0)}
    | {bytes([code]).decode("cp1252", "ignore") for code in range(0x80, 0xC0)}
)
_MISREAD = re.compile(f"[\u00c2-\u00f4][{re.escape(_REST)}]")

_script_of: dict[str, str | None] = {}


def scripts(text: str) -> set[str]:
    """Return the scripts of a text's letters; Chinese, Japanese and Korean are one.

    Examples
    --------
    >>> sorted(scripts("na\u00efve \u03b1 3"))
    ['GREEK', 'LATIN']
    """
    if text.isascii():
        return {"LATIN"} if _LATIN.search(text) else set()
    found = {_script(character) for character in set(text)}
    found.discard(None)
    return found  # type: ignore[return-value]  # None is gone


def unseen_characters(text: str, found: set[str]) -> tuple[set[str], set[str]]:
    """Return the control and invisible characters of a text, and the spaces of other kinds.

    Parameters
    ----------
    text : str
    found : set of str
        Its scripts: what joins letters is spelling in some of them.
    """
    # Python's notion of printable leaves out just these, and is fast to ask.
    if text.isprintable() and (text.isascii() or _UNSEEN.isdisjoint(text)):
        return ("\ufffd" in text and {"\ufffd"}) or set(), set()
    odd, spaces = set(), set()
    for character in set(text):
        if unicodedata.category(character) == "Zs":
            if character != " ":
                spaces.add(character)
        elif character in _JOINERS:
            if found <= _ALPHABETS and not _in_emoji(text):
                odd.add(character)
        elif not character.isprintable() or character in _UNSEEN or character == "\ufffd":
            odd.add(character)
    return odd, spaces


def describe(character: str) -> str:
    """Return a character's number and name.

    Examples
    --------
    >>> describe("\u200b")
    'U+200B ZERO WIDTH SPACE'
    """
    kinds = {"Cc": "a control character", "Co": "private use", "Cn": "unassigned"}
    name = unicodedata.name(character, "") or kinds.get(unicodedata.category(character), "")
    return f"U+{ord(character):04X} {name}".rstrip()


def damaged_encoding(text: str) -> str | None:
    """Return what a text was before its UTF-8 was read as Latin-1 or Windows-1252, or None.

    Examples
    --------
    >>> damaged_encoding("caf\u00c3\u00a9")
    'café'
    """
    if text.isascii() or not _MISREAD.search(text):
        return None
    for encoding in ("cp1252", "latin-1"):
        try:
            return text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
    return None


def _script(character: str) -> str | None:
    try:
        return _script_of[character]
    except KeyError:
        return _script_of.setdefault(character, _look_up(character))


def _look_up(character: str) -> str | None:
    if character in _NEUTRAL or not unicodedata.category(character).startswith("L"):
        return None
    name = unicodedata.name(character, "")
    first = name.removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").partition(" ")[0]
    if first.startswith(_EAST_ASIAN):
        return "CJK"
    return first if first in _SCRIPTS else None


def _in_emoji(text: str) -> bool:
    return any(unicodedata.category(character) == "So" for character in text)
