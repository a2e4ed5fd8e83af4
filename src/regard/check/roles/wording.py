"""Turns the author's axis words into axes over variables.

``batch``, ``heads`` and the like stand for themselves, ``c_units`` is the constructor's
``units``, ``w_dim`` a size that the author calls ``dim``.
"""

import re
from collections.abc import Iterator

from regard.check.roles.candidate import CONTENT, TIMES, Axes
from regard.check.roles.cast import Part
from regard.check.roles.reading import Reading
from regard.check.roles.statements import Shape
from regard.check.roles.words import axis_of

__all__ = ["Wording"]

_PER_EXAMPLE = re.compile(
    r"\b(per|for (each|every)|of (each|every)|an?) (example|sentence|batch)"
)
_DIRECTIONS = re.compile(r"(n_?|num_?)?(dirs|directions)")


class Wording:
    """Reads stated shapes for the arguments of one target.

    ``variables`` maps every variable that was made to the author's word.
    """

    def __init__(self, reading: Reading, shapes: tuple[Shape, ...], *, is_self: bool) -> None:
        self.reading, self.shapes, self.is_self = reading, shapes, is_self
        self.options = {p.name for p in reading.options}
        self.variables: dict[str, str] = {}

    def stated(self, part: Part) -> Iterator[Axes]:
        """Candidates that the author's text states for an argument."""
        for shape in self.shapes:
            mine = shape.name == part.name
            if shape.words[0].startswith("@"):
                continue
            if not mine and not shape.firm and part.role in ("key", "value"):
                tokens = self.tokens(part, shape.words)  # as the queries are unpacked
                if tokens is not None:
                    yield Axes(tokens, 0.3)
                continue
            if not mine and (shape.name or part.role not in CONTENT):
                continue
            words = shape.words
            if mine and part.role == "mask" and "batch" not in words and len(words) < 3:
                said = re.search(rf"\b{part.name}\b[^.;]*", self.reading.words)
                if said and _PER_EXAMPLE.search(said.group()):
                    words = ("batch", *words)
            tokens = self.tokens(part, words)
            if tokens is not None:
                where = shape.where if shape.firm else ""
                yield Axes(tokens, 0.0 if shape.firm else 0.05, where)

    def tokens(self, part: Part, words: tuple[str, ...]) -> tuple[str, ...] | None:
        """Axes over variables; None where the words make no sense together."""
        found = []
        for index, word in enumerate(words):
            token = self._token(part, word, index, words)
            if token is None:
                return None
            found.append(token)
        times = {"1", "T", "T_enc", "T_dec", "T_mem"}
        doubled = {t for t in found if found.count(t) > 1} - times
        return None if doubled else tuple(found)

    def _token(  # noqa: PLR0911 - one a kind of word
        self, part: Part, word: str, index: int, words: tuple[str, ...]
    ) -> str | None:
        plain = word.strip().replace("-", "_")
        if plain.isdigit():
            return plain
        if re.search(r"[*+/]", plain):
            return self._expression(part, plain, index, words)
        plain = re.sub(r"\s+", "_", plain)
        lower = plain.lower()
        picture = _picture(lower, index, words)
        if picture:
            return picture
        if plain in self.options or lower in self.options:
            return f"c_{plain if plain in self.options else lower}"
        axis = _meaning(lower, index, words)
        if axis == "feature":
            name = f"w_{re.sub(r'[^0-9A-Za-z_]', '_', plain)}"
            self.variables[name] = plain
            return name
        if axis in ("query", "key", "time"):
            return self._time(part, axis, lower)
        return axis

    def _time(self, part: Part, axis: str, word: str) -> str:
        if part.role == "mask":
            return "T" if self.is_self else {"query": "T_dec"}.get(axis, "T_enc")
        if self.is_self:
            return "T_enc" if word == "t_enc" else "T"
        return TIMES.get(part.role, "T")

    def _expression(
        self, part: Part, word: str, index: int, words: tuple[str, ...]
    ) -> str | None:
        pieces = re.split(r"\s*([*+/]+)\s*", word.replace("(", "").replace(")", ""))
        done = []
        for i, piece in enumerate(pieces):
            token: str | None = piece
            if i % 2 == 0:
                is_count = _DIRECTIONS.fullmatch(piece.strip().replace(" ", "_"))
                token = "dirs" if is_count else self._token(part, piece, index, words)
            if token is None:
                return None
            done.append(token)
        return re.sub(r"^layers\*2$|^2\*layers$", "layers*dirs", "".join(done))


def _picture(word: str, index: int, words: tuple[str, ...]) -> str:
    """Height and width, which are a pair."""
    if word in ("h", "height") and "w" in [w.lower()[:1] for w in words[index + 1 :]]:
        return "height"
    if word in ("w", "width") and index and words[index - 1].lower()[:1] == "h":
        return "width"
    return ""


def _counts_examples(index: int, words: tuple[str, ...]) -> bool:
    """Whether an ``N`` is the batch: it stands first of three, or beside an ``L`` or ``S``."""
    others = [w for i, w in enumerate(words) if i != index]
    if "batch" in {axis_of(w) for w in others}:
        return False
    first = index == 0 and len(words) == 3
    return first or any(w in ("L", "S") for w in others)


def _meaning(word: str, index: int, words: tuple[str, ...]) -> str | None:
    """Meaning of a word by its place: ``n`` first is a batch, ``h`` last a hidden size."""
    last = index == len(words) - 1
    axis = axis_of(word)
    if word == "n" and _counts_examples(index, words):
        return "batch"
    if word == "h":
        return "feature" if last else "heads"
    if word in ("d", "e", "c") or (last and axis in (None, "time") and word == "n"):
        return "feature"
    if axis is None and (last or index == 1 == len(words) - 2):
        return "feature"
    return axis
