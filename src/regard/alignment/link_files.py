"""Reading and writing files of links: Pharaoh's format, its variants for gold, and NAACL's.

``pharaoh``
    One sentence pair a line, one ``source-target`` a link: ``0-0 1-2``. A link that is possible
    only is written ``1p2``, ``1?2`` or ``1-2-P``. An empty line is a sentence without links.
``naacl``
    One link a line: ``sentence source target``, then optionally ``S`` or ``P`` and a
    confidence, counted from 1 [1]_. A position 0 is the empty word: such a link is left out.
    The file does not say how many sentences there are: those behind the last link are known
    only where their number is given.

Files count from 0 or from 1 and do not say which; some programs write the target first. Both
mistakes leave a file that reads well and an error rate that means nothing. So the count is
worked out from the file, said, and refused where the file leaves it open.

References
----------
.. [1] Mihalcea and Pedersen, "An Evaluation Exercise for Word Alignment", HLT-NAACL 2003
   Workshop on Building and Using Parallel Texts.
"""

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from regard.alignment.links import Gold, Link, Links
from regard.alignment.text_lines import text_lines
from regard.errors import InputError, explain
from regard.files import write_atomically

__all__ = ["FORMATS", "Format", "LinkFile", "link_lines", "read_links", "write_links"]

Format = Literal["pharaoh", "naacl"]
"""A sentence pair a line (``0-0 1-2``), or a link a line (``sentence source target``)."""

FORMATS: tuple[Format, ...] = get_args(Format)
"""Both formats."""

_PHARAOH = re.compile(r"(\d{1,9})(?:([-p?])(\d{1,9}))(-[SPsp])?", re.ASCII)
_NAACL = re.compile(
    r"(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?:\s+([SPsp]))?"
    r"(?:\s+([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?))?",
    re.ASCII,
)
_TELLING = 20
"""Sentences without a 0 from which on a Pharaoh file is taken to count from 1: in text, a first
word is rarely left unlinked."""
_SENTENCES = 10_000_000  # a NAACL file may name any sentence; memory is for those before it


class _Raw(NamedTuple):
    line: int
    sentence: int
    source: int
    target: int
    sure: bool
    confidence: float | None = None


@dataclass(frozen=True)
class LinkFile:
    """What a file of links says.

    Attributes
    ----------
    sentences : tuple of Gold
        One a sentence pair, positions from 0, source first. Where the file has no marks of
        possible links, all are sure.
    format : {"pharaoh", "naacl"}
    base : {0, 1}
        What the file counts from.
    guessed : str
        How the base was found, for people; empty if it was given.
    confidences : tuple of mappings from link to float
        One a sentence pair: what a NAACL file says of its links, for those of which it says
        something. Of a link that stands there twice, the last.
    """

    sentences: tuple[Gold, ...]
    format: Format
    base: int
    guessed: str
    confidences: tuple[Mapping[Link, float], ...] = ()

    def links(self) -> tuple[Links, ...]:
        """Return all links, sure and possible, as a system's."""
        return tuple(gold.possible for gold in self.sentences)


def read_links(
    path: str | Path,
    *,
    format: Format | None = None,  # noqa: A002 - the field's word for it
    base: int | None = None,
    target_first: bool = False,
    sizes: Sequence[tuple[int, int]] | None = None,
    sentences: int | None = None,
) -> LinkFile:
    """Read a file of links.

    Parameters
    ----------
    path : path
        UTF-8 text.
    format : {"pharaoh", "naacl"}, optional
        By default: naacl if every line is three to five fields that begin with three numbers.
    base : {0, 1}, optional
        What the file counts from; by default worked out from it.
    target_first : bool
        The file writes the target's position first, as aligners do that were run the other way.
    sizes : sequence of (source words, target words), optional
        Of every sentence pair: links outside are refused.
    sentences : int, optional
        How many there are. A NAACL file is filled up with sentences without links; a Pharaoh
        file has to have as many lines.

    Returns
    -------
    file : LinkFile
        The links of every sentence pair, and what the file counts from.

    Raises
    ------
    InputError
        The file cannot be read, a line is no line of links, the base is open, a link is
        outside its sentence, or there is another number of sentences; the text names the line.
    """
    path = Path(path)
    lines = text_lines(path)
    if format is None:
        some = [line for line in lines if line.strip()]
        format = "naacl" if some and all(map(_NAACL.fullmatch, some)) else "pharaoh"  # noqa: A001
    raw, count = (_naacl if format == "naacl" else _pharaoh)(lines, path)
    if target_first:
        raw = [link._replace(source=link.target, target=link.source) for link in raw]
    guessed = ""
    if base is None:
        base, guessed = _base(raw, format, count, path)
    elif base not in (0, 1):
        raise InputError(
            explain("read_links(): `base` is refused", expected="0 or 1", got=repr(base))
        )
    if format == "naacl":  # there a 0 stands for no word
        raw = [link for link in raw if base == 0 or (link.source and link.target)]
    if sentences is not None:
        if count > sentences or (count < sentences and format != "naacl"):
            raise _other_number(path, sentences, count)
        count = sentences
    if sizes is not None:
        count = _fitted(raw, count, base, sizes, path, target_first)
    sure: list[set[tuple[int, int]]] = [set() for _ in range(count)]
    possible: list[set[tuple[int, int]]] = [set() for _ in range(count)]
    confidences: list[dict[Link, float]] = [{} for _ in range(count)]
    for link in raw:
        if min(link.source, link.target) < base:
            raise InputError(
                explain(
                    f"{path}, line {link.line}: position 0 in a file that counts from 1",
                    expected="positions from 1",
                    got=f"{link.source}-{link.target}",
                    help="the file counts from 0: give base 0",
                )
            )
        chosen = sure if link.sure else possible
        place = (link.source - base, link.target - base)
        chosen[link.sentence].add(place)
        if link.confidence is not None:
            confidences[link.sentence][place] = link.confidence
    golds = tuple(Gold.of(s, p) for s, p in zip(sure, possible, strict=True))
    return LinkFile(golds, format, base, guessed, tuple(confidences))


def write_links(
    path: str | Path,
    sentences: Iterable[Gold | Links],
    *,
    format: Format = "pharaoh",  # noqa: A002 - the field's word for it
    base: int | None = None,
    confidences: Sequence[Mapping[Link, float]] = (),
) -> None:
    """Write links, sorted, in one atomic step.

    Parameters
    ----------
    path : path
    sentences : iterable of Gold or of sets of (source, target)
    format : {"pharaoh", "naacl"}
        Links that are only possible are written ``1p2``, and ``1 1 2 P``.
    base : {0, 1}, optional
        By default each format's own: 0 for pharaoh, 1 for naacl.
    confidences : sequence of mappings from link to float
        As :class:`LinkFile` has them; written by naacl alone, with as many digits as it takes
        to read the same number.
    """
    lines = link_lines(sentences, format=format, base=base, confidences=confidences)
    write_atomically(Path(path), "".join(f"{line}\n" for line in lines).encode())


def link_lines(
    sentences: Iterable[Gold | Links],
    *,
    format: Format = "pharaoh",  # noqa: A002 - the field's word for it
    base: int | None = None,
    confidences: Sequence[Mapping[Link, float]] = (),
) -> list[str]:
    """Return the lines of such a file.

    Parameters
    ----------
    sentences : iterable of Gold or of sets of (source, target)
    format, base, confidences
        As :func:`write_links` takes them.

    Returns
    -------
    lines : list of str
        Without their ends.
    """
    base = base if base is not None else FORMATS.index(format)
    lines = []
    for number, links in enumerate(sentences, 1):
        gold = links if isinstance(links, Gold) else Gold(links, links)
        marked = [(s + base, t + base, (s, t) in gold.sure) for s, t in sorted(gold.possible)]
        if format == "pharaoh":
            lines.append(" ".join(f"{s}{'-' if sure else 'p'}{t}" for s, t, sure in marked))
        else:
            known = confidences[number - 1] if confidences else {}
            for s, t, sure in marked:
                confidence = known.get((s - base, t - base))
                behind = "" if confidence is None else f" {confidence!r}"
                lines.append(f"{number} {s} {t} {'S' if sure else 'P'}{behind}")
    return lines


def _pharaoh(lines: list[str], path: Path) -> tuple[list[_Raw], int]:
    found = []
    for sentence, line in enumerate(lines):
        for text in line.split():
            match = _PHARAOH.fullmatch(text)
            if match is None:
                raise InputError(
                    explain(
                        f"{path}, line {sentence + 1}: {text[:40]!r} is no link",
                        expected="source-target, as 0-0; possible links as 1p2, 1?2 or 1-2-P",
                        got=line[:80],
                    )
                )
            source, mark, target, after = match.groups()
            sure = mark == "-" and (after or "-S").upper() == "-S"
            found.append(_Raw(sentence + 1, sentence, int(source), int(target), sure))
    return found, len(lines)


def _naacl(lines: list[str], path: Path) -> tuple[list[_Raw], int]:
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        match = _NAACL.fullmatch(line.strip())
        sentence = int(match[1]) if match else 0
        if match is None or not 1 <= sentence <= _SENTENCES:
            raise InputError(
                explain(
                    f"{path}, line {number}: this is no link of the NAACL format",
                    expected="sentence source target, whole numbers; the sentence from 1 to "
                    f"{_SENTENCES:,}; then S or P, and a confidence",
                    got=line[:80],
                )
            )
        sure = (match[4] or "S").upper() == "S"
        said = None if match[5] is None else float(match[5])
        found.append(_Raw(number, sentence - 1, int(match[2]), int(match[3]), sure, said))
    return found, max((link.sentence + 1 for link in found), default=0)


def _other_number(path: Path, sentences: int, count: int) -> InputError:
    return InputError(
        explain(
            f"{path}: another number of sentences",
            expected=f"{sentences} sentence pairs",
            got=f"links for {count}",
            help="a sentence without links is an empty line",
        )
    )


def _base(raw: list[_Raw], format: Format, count: int, path: Path) -> tuple[int, str]:  # noqa: A002
    if format == "naacl":
        return 1, "the NAACL format counts from 1"
    if not raw:
        return 0, "there are no links in it"
    zeros = sum(link.source == 0 or link.target == 0 for link in raw)
    if zeros:
        return 0, f"counts from 0: {zeros} links have a position 0"
    if count >= _TELLING and raw:
        return 1, f"counts from 1: no position is 0 in {count} sentences"
    raise InputError(
        explain(
            f"{path}: it cannot be told whether the file counts from 0 or from 1",
            expected="the base to be given",
            got=f"no position 0 in {count} sentences, which are too few to conclude from",
            help="give base 0 or base 1 (on the command line --base, of gold --gold-base)",
        )
    )


def _fitted(  # noqa: PLR0917 - all that an error has to say
    raw: list[_Raw],
    count: int,
    base: int,
    sizes: Sequence[tuple[int, int]],
    path: Path,
    target_first: bool,
) -> int:
    """Refuse links outside their sentences, naming the likely reason; return how many."""
    if count > len(sizes) or (count < len(sizes) and raw and raw[-1].sentence + 1 > len(sizes)):
        raise InputError(
            explain(
                f"{path}: it has links for more sentences than there are",
                expected=f"{len(sizes)} sentence pairs",
                got=f"links for {count}",
            )
        )

    def outside(base: int, turned: bool) -> _Raw | None:
        for link in raw:
            place = (link.target, link.source) if turned else (link.source, link.target)
            size = sizes[link.sentence]
            if any(not 0 <= p - base < n for p, n in zip(place, size, strict=True)):
                return link
        return None

    wrong = outside(base, turned=False)
    if wrong is None:
        return len(sizes)
    remedies = [
        f"as {'target-source' if turned != target_first else 'source-target'} counted from "
        f"{other} every link is inside: give base {other}"
        + (" and exchange the sides" if turned else "")
        for other, turned in itertools.product((0, 1), (False, True))
        if (other, turned) != (base, False) and outside(other, turned) is None
    ]
    source, target = sizes[wrong.sentence]
    raise InputError(
        explain(
            f"{path}, line {wrong.line}: a link is outside its sentence",
            expected=f"source from {base} to {source - 1 + base}, target from {base} to "
            f"{target - 1 + base}",
            got=f"{wrong.source}-{wrong.target}",
            because=f"sentence {wrong.sentence + 1} has {source} source and {target} target "
            "words",
            help=remedies[0] if remedies else None,
        )
    )
