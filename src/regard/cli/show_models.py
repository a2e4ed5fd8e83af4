"""What `regard show` shows of models: where they look while they write a text."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import InputError, explain

if TYPE_CHECKING:
    from regard.alignment.collection import Collection
    from regard.alignment.record import Record
    from regard.seq2seq.reading.parallel import Sentences
    from regard.seq2seq.rewriter import Rewriter

__all__ = ["looked"]

_LONGEST = 2000
_MOST = 2_000  # sentences; a page of more is no page to look at


def looked(models: Sequence[str], text: str, *, own: bool, changed: bool) -> "Collection":
    """Return what models look at while they write the targets of a text, or their own answers.

    Parameters
    ----------
    models : sequence of str
        Model directories.
    text : str
        A file of pairs, or of sources with `own`.
    own, changed : bool
        The options --own and --counterfactuals.

    Raises
    ------
    InputError
        A model or the text is refused.
    """
    from regard.alignment.collection import Collection
    from regard.seq2seq.aligning import align_sentences, recorded_pairs
    from regard.seq2seq.reading.parallel import read_parallel
    from regard.seq2seq.runtimes import load

    given = None if own else read_parallel(text)
    records: list[Record] = []
    for name in models:
        model = load(name)
        sentences = _answered(model, text) if given is None else given
        if len(sentences) > _MOST:
            raise InputError(
                explain(
                    f"{text}: there are too many sentences to look at",
                    expected=f"at most {_MOST:,} lines",
                    got=f"{len(sentences):,} lines",
                    help="take some of them, for example with `head`",
                )
            )
        pairs = align_sentences(model, sentences, longest=_LONGEST, pieces=True)
        shown = Path(name).name if len(models) > 1 else ""
        records += recorded_pairs(model, pairs, name=shown, pieces=True, changed=changed)
    if not records:
        raise InputError(
            explain(
                f"{text}: there is nothing to show",
                expected="a line with two sides that have symbols",
                got="none",
            )
        )
    return Collection(records)


def _answered(model: "Rewriter", text: str) -> "list[Sentences]":
    from regard.cli.streams import opened
    from regard.seq2seq.lines import read_lines
    from regard.seq2seq.reading.parallel import Sentences

    with opened(text) as stream:
        lines = [line for part in read_lines(stream, text) for line in part]
    vocab = model.description.source
    asked = [line for line in lines if 0 < len(vocab.split(line)) <= _LONGEST]
    answers = iter(model.predict(asked, need_weights=False))
    known = set(asked)
    return [
        Sentences(number, line, next(answers).target if line in known else "")
        for number, line in enumerate(lines, 1)
    ]
