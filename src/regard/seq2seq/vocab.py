"""Vocabularies: the symbols of one side, and their numbers.

Ids 0 to 3 are reserved for padding, begin, end and unknown; a side's own symbols follow. The
reserved ids have no spelling, so no text can name them: a data set that contains ``<pad>`` as
a symbol gets an ordinary id for it.

Text is brought to Unicode normalisation form C first, unless a vocabulary says otherwise: "e"
with a combining accent and the composed letter are then one symbol. ``chars`` makes a symbol
of every code point, the space included; ``spaces`` splits at white space.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from regard.errors import InputError, explain

__all__ = ["BOS", "EOS", "FIRST", "PAD", "UNK", "Vocab", "normalise"]

PAD, BOS, EOS, UNK = 0, 1, 2, 3
FIRST = 4
"""The id of a vocabulary's first own symbol."""

_KINDS = ("chars", "spaces")


def normalise(text: str) -> str:
    """Return ``text`` in Unicode normalisation form C."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


@dataclass(frozen=True)
class Vocab:
    """The symbols of one side of the data.

    Parameters
    ----------
    symbols : tuple of str
        Without repetition; symbol ``i`` has the id ``FIRST + i``.
    kind : {"chars", "spaces"}
        How a text is cut into symbols.
    nfc : bool
        Bring text to normalisation form C before it is cut.

    Raises
    ------
    InputError
        A symbol is empty or listed twice, or ``kind`` is unknown.

    Examples
    --------
    >>> vocab = Vocab.of(["ba", "ca"], kind="chars")
    >>> vocab.encode("cab")
    [6, 4, 5]
    >>> vocab.decode([6, 4, 2, 5])
    'ca'
    """

    symbols: tuple[str, ...]
    kind: str = "chars"
    nfc: bool = True

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise InputError(
                explain(
                    "Vocab(): `kind` is unknown",
                    expected=" or ".join(_KINDS),
                    got=repr(self.kind),
                )
            )
        twice = [symbol for symbol, count in Counter(self.symbols).items() if count > 1]
        if twice or "" in self.symbols:
            raise InputError(
                explain(
                    "Vocab(): `symbols` has an entry that is empty or listed twice",
                    expected="different, non-empty symbols",
                    got=repr(twice[0]) if twice else "an empty symbol",
                )
            )

    @classmethod
    def of(cls, texts: Iterable[str], *, kind: str, nfc: bool = True) -> "Vocab":
        """Collect the symbols of ``texts``; sorted, so that the order of the texts is free."""
        empty = cls((), kind, nfc)
        found: set[str] = set()
        for text in texts:
            found.update(empty.split(text))
        return cls(tuple(sorted(found)), kind, nfc)

    def __len__(self) -> int:
        """Count the ids, the four reserved ones included."""
        return FIRST + len(self.symbols)

    def split(self, text: str) -> list[str]:
        """Cut a text into symbols, known or not."""
        text = normalise(text) if self.nfc else text
        return list(text) if self.kind == "chars" else text.split()

    def join(self, symbols: Iterable[str]) -> str:
        """Put symbols together again: the reverse of :meth:`split`."""
        return ("" if self.kind == "chars" else " ").join(symbols)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text's symbols; an unknown symbol becomes ``UNK``."""
        return [self._ids.get(symbol, UNK) for symbol in self.split(text)]

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
        """Return a form that :meth:`from_json` reads."""
        return {"kind": self.kind, "nfc": self.nfc, "symbols": list(self.symbols)}

    @classmethod
    def from_json(cls, form: Any) -> "Vocab":
        """Rebuild a vocabulary.

        Raises
        ------
        InputError
            ``form`` is not what :meth:`to_json` returns.
        """
        fits = (
            isinstance(form, dict)
            and set(form) == {"kind", "nfc", "symbols"}
            and isinstance(form["kind"], str)
            and isinstance(form["nfc"], bool)
            and isinstance(form["symbols"], list)
            and all(isinstance(symbol, str) for symbol in form["symbols"])
        )
        if not fits:
            raise InputError(
                explain(
                    "Vocab.from_json(): this is no vocabulary",
                    expected='{"kind": text, "nfc": true or false, "symbols": [text, ...]}',
                    got=repr(form)[:80],
                )
            )
        return cls(tuple(form["symbols"]), form["kind"], form["nfc"])

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {symbol: FIRST + i for i, symbol in enumerate(self.symbols)}
