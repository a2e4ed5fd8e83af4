"""Vocabularies: the symbols of one side, and their numbers.

Ids 0 to 3 are reserved for padding, begin, end and unknown; a side's own symbols follow. The
reserved ids have no spelling, so no text can name them: a data set that contains ``<pad>`` as
a symbol gets an ordinary id for it.

Text is brought to a Unicode normalisation form first, by default C: "e" with a combining
accent and the composed letter are then one symbol. ``chars`` makes a symbol of every code
point, the space included; ``graphemes`` leaves marks with their letter
(:mod:`regard.seq2seq.graphemes`); ``spaces`` splits at white space; ``subwords`` learns its
pieces (:mod:`regard.seq2seq.subwords`).

A source may have features: ``lemma<TAB>N;PL;GEN``. They are separated by ``;``, ``,``, ``|``
or white space outside parentheses, and each is one symbol, before those of the text, so that
attention can look at it. Such a symbol begins with a tab, which no text has: the feature
``N`` and the letter ``N`` are different symbols.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

from regard.errors import InputError, explain
from regard.seq2seq.graphemes import graphemes
from regard.seq2seq.subwords import SIZE, Subwords

__all__ = [
    "BOS",
    "EOS",
    "FIRST",
    "KINDS",
    "NORMAL_FORMS",
    "PAD",
    "UNK",
    "Vocab",
    "normal_form_of",
    "normalise",
]

PAD, BOS, EOS, UNK = 0, 1, 2, 3
FIRST = 4
"""The id of a vocabulary's first own symbol."""

KINDS = ("chars", "graphemes", "spaces", "subwords")
"""Ways to cut a text into symbols."""

NORMAL_FORMS = ("NFC", "NFD", "NFKC", "none")
"""Unicode normalisation forms; ``none`` leaves text as it is."""

_FEATURE = "\t"
# What stands in parentheses, as NOM(3,SG), is one feature.
_FEATURES = re.compile(r"(?:\([^()]*\)|[^;,|\s()]|[()])++")


def normalise(text: str, form: str = "NFC") -> str:
    """Return ``text`` in one of the :data:`NORMAL_FORMS`."""
    if form == "none" or text.isascii():
        return text
    return unicodedata.normalize(cast('Literal["NFC", "NFD", "NFKC"]', form), text)


def normal_form_of(nfc: bool, normal_form: str | None) -> str:
    """Return the form that two arguments ask for: ``normal_form``, if it is given.

    Raises
    ------
    InputError
        It is none of the :data:`NORMAL_FORMS`.
    """
    form = ("NFC" if nfc else "none") if normal_form is None else normal_form
    if form not in NORMAL_FORMS:
        raise InputError(
            explain(
                "`normal_form` is unknown", expected=" or ".join(NORMAL_FORMS), got=repr(form)
            )
        )
    return form


@dataclass(frozen=True)
class Vocab:
    r"""The symbols of one side of the data.

    Parameters
    ----------
    symbols : tuple of str
        Without repetition; symbol ``i`` has the id ``FIRST + i``.
    kind : {"chars", "graphemes", "spaces", "subwords"}
        How a text is cut into symbols.
    normal_form : {"NFC", "NFD", "NFKC", "none"}
        Unicode form that text is brought to before it is cut.
    features : bool
        What stands behind the first tab of a text are features.
    subwords : str
        The trained model of ``subwords``, as base64; empty for the other kinds.

    Raises
    ------
    InputError
        A symbol is empty or listed twice, ``kind`` or ``normal_form`` is unknown, or
        ``subwords`` does not go with the kind.

    Examples
    --------
    >>> vocab = Vocab.of(["ba", "ca"], kind="chars")
    >>> vocab.encode("cab")
    [6, 4, 5]
    >>> vocab.decode([6, 4, 2, 5])
    'ca'
    >>> Vocab.of(["Ei\tN;PL"], kind="chars", features=True).split("Ei\tN;PL")
    ['\tN', '\tPL', 'E', 'i']
    """

    symbols: tuple[str, ...]
    kind: str = "chars"
    normal_form: str = "NFC"
    features: bool = False
    subwords: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise _refused("`kind` is unknown", " or ".join(KINDS), repr(self.kind))
        normal_form_of(True, self.normal_form)
        if bool(self.subwords) != (self.kind == "subwords"):
            raise _refused(
                "`subwords` does not go with `kind`",
                "a trained model for subwords, nothing for the others",
                f"kind {self.kind!r} and {len(self.subwords)} characters of a model",
            )
        twice = [symbol for symbol, count in Counter(self.symbols).items() if count > 1]
        if twice or "" in self.symbols:
            raise _refused(
                "`symbols` has an entry that is empty or listed twice",
                "different, non-empty symbols",
                repr(twice[0]) if twice else "an empty symbol",
            )
        if self.subwords:
            Subwords(self.subwords)  # what is damaged is refused at once

    @classmethod
    def of(
        cls,
        texts: Iterable[str],
        *,
        kind: str,
        nfc: bool = True,
        normal_form: str | None = None,
        features: bool = False,
        size: int = SIZE,
    ) -> "Vocab":
        """Collect the symbols of ``texts``; sorted, so that the order of the texts is free.

        Parameters
        ----------
        texts : iterable of str
        kind : {"chars", "graphemes", "spaces", "subwords"}
        nfc : bool
            True is the normal form ``NFC``, False ``none``.
        normal_form : {"NFC", "NFD", "NFKC", "none"}, optional
            Goes before ``nfc``.
        features : bool
            What stands behind the first tab of a text are features.
        size : int
            Symbols at most, features not counted; for subwords only.

        Raises
        ------
        InputError
            As the class does, or as :meth:`~regard.seq2seq.subwords.Subwords.trained` does.
        """
        form = normal_form_of(nfc, normal_form)
        if kind == "subwords":
            return cls._of_subwords(texts, form, features, size)
        empty = cls((), kind, form, features)
        found: set[str] = set()
        for text in texts:
            found.update(empty.split(text))
        return cls(tuple(sorted(found)), kind, form, features)

    @classmethod
    def _of_subwords(
        cls, texts: Iterable[str], form: str, features: bool, size: int
    ) -> "Vocab":
        named: set[str] = set()
        plain: list[str] = []
        for text in texts:
            text = normalise(text, form)  # noqa: PLW2901 - the same text
            if features:
                text, _, behind = text.partition(_FEATURE)  # noqa: PLW2901
                named.update(_features(behind))
            plain.append(text)
        pieces = Subwords.trained(plain, size=size)
        # Characters that sentencepiece sets apart are in the text and in no piece.
        known = dict.fromkeys(pieces.symbols())
        left = {s for text in set(plain) for s in pieces.split(text)} - known.keys()
        symbols = (*sorted(named), *known, *sorted(left))
        return cls(symbols, "subwords", form, features, pieces.model)

    def __len__(self) -> int:
        """Count the ids, the four reserved ones included."""
        return FIRST + len(self.symbols)

    @property
    def nfc(self) -> bool:
        """Whether text is brought to normal form C."""
        return self.normal_form == "NFC"

    def split(self, text: str) -> list[str]:
        """Cut a text into symbols, known or not; features come first."""
        text = normalise(text, self.normal_form)
        if not self.features:
            return self._cut(text)
        text, _, behind = text.partition(_FEATURE)
        return _features(behind) + self._cut(text)

    def join(self, symbols: Iterable[str]) -> str:
        """Put symbols together again: the reverse of :meth:`split`.

        The text comes back as it was, in its normal form; only of ``spaces``, and of
        features, with one space or ``;`` in between.
        """
        if self.features:
            symbols = list(symbols)
            behind = [s[1:] for s in symbols if s.startswith(_FEATURE)]
            text = self._put([s for s in symbols if not s.startswith(_FEATURE)])
            return f"{text}{_FEATURE}{';'.join(behind)}" if behind else text
        return self._put(symbols)

    def label(self, symbol: str) -> str:
        r"""Return a symbol for people to read: features in brackets, spaces to be seen.

        Examples
        --------
        >>> Vocab((), features=True).label("\tPL")
        '[PL]'
        """
        if self.features and symbol.startswith(_FEATURE):
            return f"[{symbol[1:]}]"
        return symbol.replace(" ", "▁") if self.kind == "subwords" else symbol

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text's symbols; an unknown symbol becomes ``UNK``."""
        return self.ids(self.split(text))

    def ids(self, symbols: Iterable[str]) -> list[int]:
        """Return the ids of symbols; an unknown one becomes ``UNK``."""
        return [self._ids.get(symbol, UNK) for symbol in symbols]

    def unknown(self, text: str) -> list[str]:
        """Return the symbols of a text that have no id, each once, in order."""
        return list(dict.fromkeys(s for s in self.split(text) if s not in self._ids))

    def name(self, index: int) -> str:
        """Return the symbol of one id; the reserved ones answer with U+FFFD.

        Raises
        ------
        InputError
            There is no such id.
        """
        if not 0 <= index < len(self):
            raise InputError(
                explain(
                    "Vocab.name(): `index` is outside the vocabulary",
                    expected=f"an id from 0 to {len(self) - 1}",
                    got=str(index),
                )
            )
        return self.symbols[index - FIRST] if index >= FIRST else "�"

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids, up to the first ``EOS``; padding and ``BOS`` are left out."""
        ids = list(ids)
        end = ids.index(EOS) if EOS in ids else len(ids)
        return self.join(self.name(i) for i in ids[:end] if i not in (PAD, BOS))

    def to_json(self) -> dict[str, Any]:
        """Return a form that :meth:`from_json` reads.

        It is the oldest version that can say it: a model that needs nothing new has the same
        files as ever, which older versions read.
        """
        symbols = list(self.symbols)
        oldest = self.kind in ("chars", "spaces") and self.normal_form in ("NFC", "none")
        if oldest and not self.features:
            return {"kind": self.kind, "nfc": self.nfc, "symbols": symbols}
        return {
            "version": 2,
            "kind": self.kind,
            "normal_form": self.normal_form,
            "features": self.features,
            "symbols": symbols,
            "subwords": self.subwords,
        }

    @classmethod
    def from_json(cls, form: Any) -> "Vocab":
        """Rebuild a vocabulary.

        Raises
        ------
        InputError
            ``form`` is not what :meth:`to_json` returns.
        """
        types = _VERSIONS.get(form.get("version", 1)) if _has_version(form) else None
        fits = (
            types is not None
            and set(form) == set(types)
            and all(type(form[name]) is kind for name, kind in types.items())
            and all(type(symbol) is str for symbol in form["symbols"])
        )
        if not fits:
            raise InputError(
                explain(
                    "Vocab.from_json(): this is no vocabulary",
                    expected='{"kind": text, "nfc": true or false, "symbols": [text, ...]}, or '
                    'with "version": 2 also normal_form, features and subwords instead of nfc',
                    got=repr(form)[:80],
                )
            )
        symbols = tuple(form["symbols"])
        if "version" not in form:
            return cls(symbols, form["kind"], "NFC" if form["nfc"] else "none")
        return cls(
            symbols, form["kind"], form["normal_form"], form["features"], form["subwords"]
        )

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {symbol: FIRST + i for i, symbol in enumerate(self.symbols)}

    def _cut(self, text: str) -> list[str]:
        if self.kind == "chars":
            return list(text)
        if self.kind == "graphemes":
            return graphemes(text)
        return text.split() if self.kind == "spaces" else self._pieces.split(text)

    def _put(self, symbols: Iterable[str]) -> str:
        if self.kind == "subwords":
            return Subwords.join(symbols)
        return (" " if self.kind == "spaces" else "").join(symbols)

    @cached_property
    def _pieces(self) -> Subwords:
        pieces = Subwords(self.subwords)
        for piece in pieces.symbols():
            if self.symbols and piece not in self._ids:
                raise _refused(
                    "`subwords` is the model of another vocabulary",
                    "pieces that are all among the symbols",
                    repr(piece),
                )
        return pieces


_VERSIONS: dict[object, dict[str, type]] = {
    1: {"kind": str, "nfc": bool, "symbols": list},
    2: {
        "version": int,
        "kind": str,
        "normal_form": str,
        "features": bool,
        "symbols": list,
        "subwords": str,
    },
}


def _has_version(form: Any) -> bool:
    return isinstance(form, dict) and type(form.get("version", 1)) is int


def _features(text: str) -> list[str]:
    return [_FEATURE + feature for feature in _FEATURES.findall(text)]


def _refused(what: str, expected: str, got: str) -> InputError:
    return InputError(explain(f"Vocab(): {what}", expected=expected, got=got))
