"""The inspection of a data set: training pairs, and held-out ones beside them."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from regard.errors import InputError, explain
from regard.seq2seq.inspection.by_comparing import of_comparing, of_leaks
from regard.seq2seq.inspection.by_line import of_faults, of_lines, of_unseen
from regard.seq2seq.inspection.compare import source_count
from regard.seq2seq.inspection.finding import FileSummary, Finding, Place, Report
from regard.seq2seq.inspection.survey import Layout, Survey, survey
from regard.seq2seq.reading.fault import Fault, excerpt
from regard.seq2seq.reading.records import read_records

__all__ = ["inspect"]


def inspect(
    train: str | Path,
    *,
    dev: str | Path | None = None,
    test: str | Path | None = None,
    layout: Layout | None = None,
) -> Report:
    """Look at files of pairs for what would spoil a model or its score.

    Parameters
    ----------
    train : path
        Pairs to train on.
    dev, test : path, optional
        Pairs that should be new to the model.
    layout : Layout, optional
        Columns, symbols, normal form, and how many lines to name.

    Returns
    -------
    report : Report
        Lines that cannot be read are among the findings; reading goes on behind them.

    Raises
    ------
    InputError
        A file cannot be read at all, or an option is refused.
    """
    layout = Layout() if layout is None else layout
    if layout.limit < 0:
        raise InputError(
            explain("Layout(): `limit` is refused", expected="from 0", got=str(layout.limit))
        )
    data = survey("train", Path(train), layout)
    others = [
        survey(role, Path(path), layout, data)
        for role, path in (("dev", dev), ("test", test))
        if path is not None
    ]
    findings: list[Finding] = []
    for one in (data, *others):
        findings += of_faults(one)
        findings += of_lines(one, layout.normal_form)
        findings += _quoted(of_comparing(one, layout.limit), one.path, layout)
    for i, one in enumerate(others):
        findings += of_unseen(one, data)
        for known in (data, *others[:i]):
            findings += _quoted(of_leaks(one, known, layout.limit), one.path, layout)
    return Report.of(map(_summary, (data, *others)), findings)


def _summary(data: Survey) -> FileSummary:
    sizes = data.sizes
    some = len(sizes) > 0
    return FileSummary(
        role=data.role,
        file=str(data.path),
        pairs=len(sizes),
        sources=source_count(data),
        refused=sum(tally.count for tally in data.faults.values()),
        source_symbols=len(data.source.every_symbol()),
        target_symbols=len(data.target.every_symbol()),
        longest_source=int(sizes[:, 1].max()) if some else 0,
        longest_target=int(sizes[:, 2].max()) if some else 0,
    )


def _quoted(found: Iterable[Finding], path: Path, layout: Layout) -> Iterator[Finding]:
    """Say what stands in the lines, and in those that they contradict."""
    kept = list(found)
    places = [place for finding in kept for place in finding.places]
    wanted = {place.line for place in places}
    wanted |= {p.other for p in places if p.other is not None and p.other_file is None}
    texts = _texts(path, wanted, layout)

    def quoted(place: Place) -> Place:
        text = texts.get(place.line, "")
        if place.other is not None and place.other_file is None:
            before = texts.get(place.other, "")
            text += f", and {before}" if before != text else ""
        return replace(place, text=text)

    for finding in kept:
        yield replace(finding, places=tuple(map(quoted, finding.places)))


def _texts(path: Path, lines: set[int], layout: Layout) -> dict[int, str]:
    """Read some lines again; that is cheaper than to remember all."""
    found: dict[int, str] = {}
    if not lines:
        return found
    last = max(lines)
    records = read_records(path, columns=layout.columns, file_format=layout.file_format)
    with closing(records):
        for record in records:
            if record.line in lines and not isinstance(record, Fault):
                targets = " or ".join(excerpt(target, 40) for target in record.targets[:3])
                found[record.line] = f"{excerpt(record.source, 40)} -> {targets}"
            if record.line >= last:
                break
    return found
