"""Subwords: pieces of words and the spaces before them, learnt from a side's own text.

sentencepiece (the extra ``subwords``) trains the unigram model; to use one it is faster, and
not needed (:mod:`regard.seq2seq.unigram`). It does no normalisation of its own here, so pieces
put together are the text again, to the last space: a piece begins with the space that stood
before it, and a text is cut as if a space stood before its first word, so that this word has
the pieces that it has elsewhere.
"""

import base64
import binascii
import io
from collections.abc import Iterable
from functools import cached_property
from typing import Any

from regard.errors import InputError, explain
from regard.seq2seq.unigram import Unigram

__all__ = ["SIZE", "Subwords"]

SIZE = 4000
"""Symbols a side gets at most, unless it is told otherwise."""

_MARK = "▁"  # sentencepiece's sign for a space; one that is in the text stands alone
_RESERVED = "▅"  # sentencepiece skips lines that have it
_LONGEST = 10**6  # bytes; sentencepiece would leave longer lines out


class Subwords:
    """Cuts texts into pieces, always in the same way.

    Parameters
    ----------
    model : str
        A trained sentencepiece model, as base64.

    Raises
    ------
    InputError
        ``model`` is no base64. Whether it is a model is looked at when it is first used.
    """

    def __init__(self, model: str) -> None:
        self.model = model
        try:
            self._bytes = base64.b64decode(model.encode("ascii"), validate=True)
        except (UnicodeEncodeError, binascii.Error) as error:
            raise _damaged(str(error)) from error
        if not self._bytes:
            raise _damaged("nothing")

    @classmethod
    def trained(cls, texts: Iterable[str], *, size: int = SIZE) -> "Subwords":
        """Learn the pieces of some texts; their order is free.

        Parameters
        ----------
        texts : iterable of str
        size : int
            Number of pieces at most; every single character that occurs is among them.

        Raises
        ------
        InputError
            sentencepiece is not installed, there is no text, or ``size`` is smaller than the
            number of different characters.
        """
        sentencepiece = _sentencepiece()
        if sentencepiece is None:
            raise InputError(
                explain(
                    "subwords need sentencepiece to be learnt, which is not installed",
                    expected="sentencepiece",
                    got="nothing",
                    help="pip install 'regard[subwords]'",
                )
            )
        # Sums of the same numbers in another order may differ in their last bit.
        lines = sorted(
            " " + part.replace(_RESERVED, " ") for text in texts for part in text.split(_MARK)
        )
        characters = {character for line in lines for character in line}
        if not characters - {" "}:
            raise InputError(
                explain(
                    "subwords: there is no text to learn from",
                    expected="texts with at least one symbol",
                    got=f"{len(lines)} texts, all of them empty",
                )
            )
        if size < len(characters):
            raise InputError(
                explain(
                    "subwords: the vocabulary is too small",
                    expected=f"at least {len(characters)}, one symbol for each character",
                    got=str(size),
                    help="give a greater size",
                )
            )
        written = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines),
                model_writer=written,
                model_type="unigram",
                vocab_size=size + 1,  # its own unknown symbol is counted
                hard_vocab_limit=False,
                character_coverage=1.0,
                normalization_rule_name="identity",
                add_dummy_prefix=False,
                remove_extra_whitespaces=False,
                max_sentence_length=_LONGEST,
                num_threads=1,  # more add up in an order of their own
                unk_id=0,
                bos_id=-1,
                eos_id=-1,
                pad_id=-1,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise InputError(
                explain(
                    "subwords: no pieces could be learnt",
                    expected="texts that sentencepiece can learn from",
                    got=str(error)[:300],
                    help="cut the text into chars or spaces instead",
                )
            ) from error
        return cls(base64.b64encode(written.getvalue()).decode("ascii"))

    def symbols(self) -> tuple[str, ...]:
        """Return all pieces, in the model's order, spaces written as spaces."""
        return tuple(piece.replace(_MARK, " ") for piece in self._unigram.pieces)

    def split(self, text: str) -> list[str]:
        """Cut a text; what is in no piece comes character by character."""
        first, *others = (" " + text).split(_MARK)
        symbols = self._cut(first)
        for part in others:
            symbols.append(_MARK)
            symbols += self._cut(part)
        return symbols

    @staticmethod
    def join(symbols: Iterable[str]) -> str:
        """Put pieces together again."""
        return "".join(symbols).removeprefix(" ")

    def _cut(self, text: str) -> list[str]:
        if self._processor is None:
            pieces = self._unigram.encode(text.replace(" ", _MARK))
        else:
            pieces = self._processor.encode(text, out_type=str)
        symbols: list[str] = []
        for piece in pieces:
            symbol = piece.replace(_MARK, " ")
            # Several unknown characters that follow each other come as one piece.
            symbols += [symbol] if symbol in self._known else symbol
        return symbols

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.symbols())

    @cached_property
    def _unigram(self) -> Unigram:
        try:
            return Unigram(self._bytes)
        except ValueError as error:
            raise _damaged(str(error)) from error

    @cached_property
    def _processor(self) -> Any:
        """Return sentencepiece's, or None where it is not installed."""
        if not self._known or _sentencepiece() is None:  # what is damaged is noticed first
            return None
        processor = _sentencepiece().SentencePieceProcessor()
        try:
            processor.LoadFromSerializedProto(self._bytes)
        except RuntimeError as error:
            raise _damaged(str(error)[:200]) from error
        return processor


def _sentencepiece() -> Any:
    try:
        import sentencepiece  # noqa: PLC0415 - an extra; other vocabularies do without
    except ModuleNotFoundError as error:
        if error.name != "sentencepiece":
            raise
        return None
    return sentencepiece


def _damaged(got: str) -> InputError:
    return InputError(
        explain(
            "the subwords of the vocabulary are damaged",
            expected="a sentencepiece model, as base64",
            got=got,
            help="copy the model directory again, or train again",
        )
    )
