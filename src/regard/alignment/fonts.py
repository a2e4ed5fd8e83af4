"""Which installed fonts have the characters of a picture."""

from collections.abc import Iterable

from matplotlib import font_manager

__all__ = ["families"]

# Likely to have many scripts; asked first, since opening every font takes seconds.
_WIDE = (
    "noto",
    "cjk",
    "wenquanyi",
    "source han",
    "droid",
    "unifont",
    "arial unicode",
    "gothic",
)
_FIRST = "DejaVu Sans"  # matplotlib's own, always there
_BOXES = "Last Resort"
_TRIED = 200  # fonts


def families(texts: Iterable[str]) -> tuple[list[str], str]:
    """Return font families that together have the characters, and those that none has.

    Parameters
    ----------
    texts : iterable of str

    Returns
    -------
    names : list of str
        For matplotlib's ``font.family``; it falls back from one to the next.
    missing : str
        Characters without a glyph, each once, in their order of appearance.

    Examples
    --------
    >>> families(["attention"])
    (['DejaVu Sans'], '')
    """
    wanted = dict.fromkeys(
        character for text in texts for character in text if character.isprintable()
    )
    names = [_FIRST]
    found = [font_manager.findfont(_FIRST)]
    entries = sorted(
        font_manager.fontManager.ttflist,
        key=lambda entry: (not any(word in entry.name.lower() for word in _WIDE), entry.name),
    )
    left = _left(wanted, found[0])
    for entry in entries[:_TRIED]:
        if not left:
            break
        # "Last Resort" claims every character, and shows each as a box.
        if entry.name in names or entry.name.startswith(_BOXES):
            continue
        rest = _left(left, entry.fname)
        if len(rest) < len(left):
            names.append(entry.name)
            left = rest
    return names, "".join(left)


def _left(wanted: Iterable[str], path: str) -> dict[str, None]:
    try:
        known = font_manager.get_font(path).get_charmap()
    except (OSError, RuntimeError):  # a font that is broken or gone helps nobody
        known = {}
    return dict.fromkeys(character for character in wanted if ord(character) not in known)
