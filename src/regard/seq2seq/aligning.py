"""Aligning a parallel text with trained models: what each pair's words looked at."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from regard.alignment.counterfactual import Alteration, Counterfactual
from regard.alignment.matrix import Alignment
from regard.alignment.record import Record
from regard.errors import InputError, explain
from regard.seq2seq.forced import END, Forced, aligned
from regard.seq2seq.reading.parallel import Sentences
from regard.seq2seq.rewriter import Rewriter
from regard.seq2seq.vocab import EOS

__all__ = ["AlignedPair", "align_sentences", "recorded_pairs"]


@dataclass(frozen=True)
class AlignedPair:
    """One entry of a parallel text.

    Attributes
    ----------
    line : int
        In the file, from 1.
    left_out : {"", "empty", "too long"}
        Why there is no alignment.
    forced : Forced or None
        What the model made of the target.
    forward, backward : Alignment or None
        Rows are the target's words, and the source's.
    """

    line: int
    left_out: str
    forced: Forced | None = None
    forward: Alignment | None = None
    backward: Alignment | None = None


def align_sentences(
    model: Rewriter,
    sentences: Sequence[Sentences],
    *,
    backward: Rewriter | None = None,
    unknown: str = "keep",
    longest: int = 2000,
    pieces: bool = False,
    features: bool = True,
) -> list[AlignedPair]:
    """Read every target to a model, and every source to one that reads the other way round.

    Parameters
    ----------
    model : Rewriter
    sentences : sequence of Sentences
    backward : Rewriter, optional
        From target to source.
    unknown : {"keep", "fail"}
        What to do with source symbols that the model never saw. Dropping them would move every
        position behind them.
    longest : int
        Symbols that a side may have: memory grows with the square.
    pieces, features : bool
        As of :func:`~regard.seq2seq.forced.aligned`.

    Returns
    -------
    pairs : list of AlignedPair
        One for each entry.

    Raises
    ------
    InputError
        A model has no attention; a symbol is unknown where that fails; or the models cut a
        sentence into different words.
    """
    for each in (model, backward):
        if each is not None and not each.attends:
            raise InputError(
                explain(
                    "the model has no weights to align by",
                    expected="a model with attention",
                    got='attention "none"',
                )
            )
    found = [_left_out(model, backward, pair, longest) for pair in sentences]
    rows = [row for row, pair in enumerate(found) if not pair.left_out]
    texts = [_spaced(model, sentences[row]) for row in rows]
    vocab = model.description
    for row, forced in zip(rows, model.force(texts, unknown=unknown), strict=True):
        forward = aligned(forced, vocab.source, vocab.target, pieces=pieces, features=features)
        found[row] = AlignedPair(found[row].line, "", forced, forward)
    if backward is not None:
        turned = [_turned(backward, sentences[row]) for row in rows]
        other_vocab = backward.description
        for row, forced in zip(rows, backward.force(turned, unknown=unknown), strict=True):
            one = found[row]
            assert one.forward is not None  # made above
            other = aligned(forced, other_vocab.source, other_vocab.target, pieces=pieces)
            _check_words(one, other)
            found[row] = AlignedPair(one.line, "", one.forced, one.forward, other)
    return found


def recorded_pairs(
    model: Rewriter,
    pairs: Sequence[AlignedPair],
    *,
    name: str,
    end: bool = False,
    pieces: bool = False,
    features: bool = True,
    changed: bool = False,
) -> list[Record]:
    """Return the records of the pairs that have an alignment, to be written or shown.

    Parameters
    ----------
    model : Rewriter
    pairs : sequence of AlignedPair
        What :func:`align_sentences` returned.
    name : str
        What the model is called in them.
    end, pieces, features : bool
        As of :func:`~regard.seq2seq.forced.aligned`.
    changed : bool
        Also work out what the model would have written with other weights
        (:mod:`regard.seq2seq.counterfactuals`). Symbols then stay apart, features included:
        weights are changed where the model reads.

    Raises
    ------
    InputError
        `changed` with pieces merged, features left out, or an exported model.
    """
    merged = not pieces and "subwords" in (
        model.description.source.kind,
        model.description.target.kind,
    )
    if changed and (merged or not features):
        raise InputError(
            explain(
                "weights are changed symbol by symbol",
                expected="pieces and features kept",
                got="pieces merged" if merged else "features left out",
                help="keep pieces apart (on the command line --pieces)"
                if merged
                else "keep features",
            )
        )
    vocab = model.description
    records = []
    for number, pair in enumerate(pairs, 1):
        if pair.forced is None:
            continue
        sides = vocab.source, vocab.target
        seen = aligned(pair.forced, *sides, end=end, pieces=pieces, features=features)
        # Where it stands: sentences that were left out have no record.
        made = {**seen.made_by, "by": "forced decoding", "sentence": number, "of": len(pairs)}
        if math.isfinite(pair.forced.log_prob):
            made["log_prob"] = round(pair.forced.log_prob, 6)
        records.append(
            Record(
                seen.weights,
                seen.target,
                seen.source,
                name=str(number),
                model=name,
                counterfactuals=_changed(model, pair.forced, end) if changed else None,
                made_by=made,
            )
        )
    return records


def _changed(model: Rewriter, forced: Forced, end: bool) -> dict[Alteration, Counterfactual]:
    from regard.seq2seq.counterfactuals import (  # noqa: PLC0415 - loads PyTorch
        changed_steps,
        counterfactuals,
    )
    from regard.seq2seq.transducer import Transducer  # noqa: PLC0415 - as above

    if not isinstance(model, Transducer):
        raise InputError(
            explain(
                "counterfactuals need the model itself",
                expected="a model directory, as `regard train --out` writes it",
                got="an exported model, whose steps cannot be changed",
            )
        )
    vocab = model.description
    source, target = (
        vocab.source.ids(forced.source_symbols),
        vocab.target.ids(forced.target_symbols),
    )
    steps = changed_steps(model.model, source, target, end=end)
    labels = [
        END if i == EOS else vocab.target.label(vocab.target.name(i))
        for i in range(len(vocab.target))
    ]
    return counterfactuals(steps, labels)


def _left_out(
    model: Rewriter, backward: Rewriter | None, pair: Sentences, longest: int
) -> AlignedPair:
    vocab = model.description
    sizes = [len(vocab.source.split(pair.source)), len(vocab.target.split(pair.target))]
    # A source with features and nothing else is no text to align.
    if vocab.source.features and not pair.source.partition("\t")[0].strip():
        sizes[0] = 0
    if backward is not None:
        source, target = _turned(backward, pair)
        other = backward.description
        sizes += [len(other.source.split(source)), len(other.target.split(target))]
    if min(sizes) == 0:
        return AlignedPair(pair.line, "empty")
    return AlignedPair(pair.line, "too long" if max(sizes) > longest else "")


def _spaced(model: Rewriter, pair: Sentences) -> tuple[str, str]:
    """Return both texts, of subwords with one space between words: words are counted by it."""
    vocab = model.description
    source, tab, features = pair.source.partition("\t")
    return (
        _single(source, vocab.source.kind) + tab + features,
        _single(pair.target, vocab.target.kind),
    )


def _turned(backward: Rewriter, pair: Sentences) -> tuple[str, str]:
    source = pair.source.partition("\t")[0]
    return _spaced(backward, Sentences(pair.line, pair.target, source))


def _single(text: str, kind: str) -> str:
    return " ".join(text.split()) if kind == "subwords" else text


def _check_words(one: AlignedPair, other: Alignment) -> None:
    assert one.forward is not None  # only called with it
    mine = (len(one.forward.target), len(one.forward.source))
    theirs = (len(other.source), len(other.target))
    if mine != theirs:
        raise InputError(
            explain(
                f"line {one.line}: the two models cut the pair into different words",
                expected=f"{mine[0]} target and {mine[1]} source words, as the first model has",
                got=f"{theirs[0]} target and {theirs[1]} source words",
                help="train both with the same kinds of symbols, and leave features out",
            )
        )
