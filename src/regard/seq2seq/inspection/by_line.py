"""Findings that single lines are enough for, and those about a file's symbols."""

from collections.abc import Iterator

from regard.seq2seq.inspection.characters import describe
from regard.seq2seq.inspection.finding import Finding, Place, Tally
from regard.seq2seq.inspection.survey import Side, Survey
from regard.seq2seq.reading.fault import excerpt

__all__ = ["of_faults", "of_lines", "of_unseen"]

_RARE_SCRIPT = 0.01  # of a side's lines with letters
_MAIN_SCRIPT = 0.9

# Code -> level, what it is, and what to do.
_BY_LINE = {
    "edge-space": (
        "warning",
        "{side} texts that begin or end with a space",
        "take the spaces off; as characters they are symbols that a model has to learn",
    ),
    "double-space": (
        "warning",
        "{side} texts with two spaces in a row",
        "put one in their place",
    ),
    "invisible": (
        "warning",
        "{side} texts with control, invisible or replaced characters",
        "take them out, or find out where they were lost; each is a symbol of its own",
    ),
    "odd-space": (
        "note",
        "{side} texts with spaces that are not the usual one",
        "if they mean nothing, put the usual space in their place, or train with the normal "
        "form NFKC",
    ),
    "missing": (
        "warning",
        "{side} texts that are another program's word for nothing",
        "take the lines out, or fill the field",
    ),
    "entity": (
        "warning",
        "{side} texts with entities of HTML",
        "put the characters in their place, as html.unescape of Python does",
    ),
    "csv-quotes": (
        "warning",
        "{side} texts with the quotes of CSV",
        "if the whole file has them, read it with --file-format tsv-quoted; else take them off",
    ),
    "misread": (
        "warning",
        "{side} texts in UTF-8 that was read as another encoding",
        "go back to the original file and convert it from UTF-8",
    ),
    "mixed-script": (
        "warning",
        "{side} texts that have a word with letters of two scripts",
        "look for letters that only look alike, as Latin a and Cyrillic \u0430",
    ),
}


def of_faults(data: Survey) -> Iterator[Finding]:
    """Yield what is wrong with lines that are no pair."""
    for code, tally in data.faults.items():
        fault = data.first_fault[code]
        what = f"lines refused ({fault.what})"
        yield _finding(data, code, ("error", what, fault.remedy), tally)


def of_lines(data: Survey, normal_form: str) -> Iterator[Finding]:
    """Yield what is odd in single texts; `normal_form` is what they are brought to."""
    for name, side in (("source", data.source), ("target", data.target)):
        for code, (level, what, remedy) in _BY_LINE.items():
            tally = side.tallies.get(code)
            if tally is not None:
                yield _finding(data, code, (level, what.format(side=name), remedy), tally)
        yield from _of_forms(data, name, side, normal_form)
        yield from _of_scripts(data, name, side)
        if data.role == "train" and side.once:
            yield _of_rare(data, name, side)


def of_unseen(data: Survey, train: Survey) -> Iterator[Finding]:
    """Yield the symbols that the training data lack, the most frequent first."""
    remedies = {
        "source": "a model cannot read them: add training pairs that have them",
        "target": "a model cannot write them and misses these pairs: add training pairs that "
        "have them",
    }
    for name, side in (("source", data.source), ("target", data.target)):
        if side.unseen:
            found = sorted(side.unseen.items(), key=lambda item: (-item[1].count, item[0]))
            places = [
                Place(tally.places[0].line, f"{_shown(symbol)} in {_lines(tally.count)}")
                for symbol, tally in found[: side.limit]
            ]
            what = f"{name} symbols that {train.path} does not have"
            yield _finding(
                data,
                "unseen-symbol",
                ("warning", what, remedies[name]),
                Tally(0, len(found), places),
            )


def _of_forms(data: Survey, name: str, side: Side, normal_form: str) -> Iterator[Finding]:
    level, remedy = "note", f"nothing: text is brought to {normal_form}"
    if normal_form == "none":
        level, remedy = "warning", "train with a normal form, or bring the file to NFC"
    apart, mixed = side.tallies.get("form-d"), side.tallies.get("form-mixed")
    if apart is not None and (side.composed or mixed is not None):
        what = f"{name} texts that spell with combining marks what others spell with one letter"
        yield _finding(data, "normal-form", (level, what, remedy), apart)
    if mixed is not None:
        what = f"{name} texts in no Unicode normal form"
        yield _finding(data, "normal-form", (level, what, remedy), mixed)


def _of_scripts(data: Survey, name: str, side: Side) -> Iterator[Finding]:
    if not side.scripts:
        return
    main = max(side.scripts, key=lambda script: (side.scripts[script].count, script))
    if side.scripts[main].count < _MAIN_SCRIPT * side.with_letters:
        return
    for script, tally in sorted(side.scripts.items()):
        if script != main and tally.count < _RARE_SCRIPT * side.with_letters:
            places = [Place(place.line, excerpt(place.text)) for place in tally.places]
            what = f"{name} texts with letters of the script {script}; most have {main}"
            remedy = "take the lines out if they are of another language"
            yield _finding(
                data,
                "foreign-script",
                ("warning", what, remedy),
                Tally(0, tally.count, places),
            )


def _of_rare(data: Survey, name: str, side: Side) -> Finding:
    rare = sorted(side.once.items(), key=lambda item: (item[1], item[0]))
    places = [Place(line, _shown(symbol)) for symbol, line in rare[: side.limit]]
    what = f"{name} symbols that only one line has"
    remedy = "look whether they are typing errors; a model learns little from one line"
    return _finding(data, "rare-symbol", ("note", what, remedy), Tally(0, len(rare), places))


def _finding(data: Survey, code: str, said: tuple[str, str, str], tally: Tally) -> Finding:
    level, what, remedy = said
    places = tuple(tally.places)
    return Finding(code, level, str(data.path), what, tally.count, places, remedy)


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count:,} lines"


def _shown(symbol: str) -> str:
    if symbol.startswith("\t"):
        return f"the feature {excerpt(symbol[1:])}"
    if len(symbol) == 1 and not symbol.isascii():
        return f"{symbol!r} {describe(symbol)}"
    return excerpt(symbol)
