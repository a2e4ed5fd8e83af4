"""``--batch``: many targets with contracts of their own, one JSON object a line each way."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regard.check.declared import read_declared, validated
from regard.check.finding import Level, Report
from regard.check.run import Job, check_jobs, exit_code
from regard.check.settings import Limits
from regard.check.target import Discover, find_targets
from regard.errors import InputError, explain

__all__ = ["answer_batch"]


@dataclass
class _Line:
    """A line of the batch, and what is known about it."""

    id: Any = None
    target: str = ""
    error: str = ""
    left: int = 0  # jobs without a report
    reports: dict[int, Report] = field(default_factory=dict)


def answer_batch(
    lines: Iterable[bytes],
    *,
    options: Callable[[Mapping[str, Any] | None], Mapping[str, Any]],
    limits: Limits,
    processes: int | None,
    engine: str,
    settle: Callable[[Report], Report],
    fail_on: Level = "error",
    discover: Discover | None = None,
) -> Iterator[dict[str, Any]]:
    """Yield the answer to each line, in order, as soon as it and those before are known.

    Parameters
    ----------
    lines : iterable of bytes
        Each ``{"id": ..., "target": "file.py:name", "contract": path, object or null}``.
    options : callable
        Returns the engine's options for a line's contract, which goes before what a
        project states.
    limits, processes, engine
        As for :func:`regard.check.run.check_jobs`.
    settle : callable
        Marks and leaves out findings.
    fail_on : "error" | "warning" | "note"
        For the ``rc`` of an answer.
    discover : callable, optional
        As for :func:`regard.check.target.find_targets`.

    Yields
    ------
    answer : dict
        ``id``, ``target``, ``findings``, ``checked``, ``rc`` (what the exit code would be),
        ``seconds``, and ``error`` where there was nothing to run; else all of a report.
    """
    asked: list[_Line] = []
    work: list[Job] = []
    owner: list[_Line] = []
    for number, data in enumerate(lines, 1):
        if not data.strip():
            continue
        line = _Line()
        asked.append(line)
        try:
            jobs = _read(data, number, line, options, discover)
        except InputError as error:
            line.error = str(error)
            continue
        line.left = len(jobs)
        work += jobs
        owner += [line] * len(jobs)
    waiting = iter(asked)
    due = next(waiting, None)
    running = check_jobs(work, limits=limits, processes=processes, engine=engine)
    while due is not None:
        while due is not None and not due.left:
            yield _answer(due, fail_on)
            due = next(waiting, None)
        for index, report in running:
            owner[index].reports[index] = settle(report)
            owner[index].left -= 1
            break


def _read(
    data: bytes,
    number: int,
    line: _Line,
    options: Callable[[Mapping[str, Any] | None], Mapping[str, Any]],
    discover: Discover | None,
) -> list[Job]:
    try:
        asked = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _refused(number, str(error)) from None
    if not isinstance(asked, dict):
        raise _refused(number, type(asked).__name__)
    line.id = asked.get("id")
    if not isinstance(asked.get("target"), str) or set(asked) - {"id", "target", "contract"}:
        raise _refused(number, ", ".join(map(str, asked)) or "an empty object")
    line.target = asked["target"]
    contract = asked.get("contract")
    if isinstance(contract, str):
        contract = read_declared(contract)
    elif contract is not None:
        contract = validated(contract, f"the contract of line {number}")
    targets, _ = find_targets([line.target], discover=discover)
    if contract is not None and len(targets) > 1:
        raise _refused(number, f"a contract for {len(targets)} targets")
    return [Job(target, contract, options(contract)) for target in targets]


def _refused(number: int, got: str) -> InputError:
    return InputError(
        explain(
            f"check: line {number} of the batch is refused",
            expected='{"id": ..., "target": "file.py:name", "contract": path or null}',
            got=got[:80],
        )
    )


def _answer(line: _Line, fail_on: Level) -> dict[str, Any]:
    answer: dict[str, Any] = {"id": line.id, "target": line.target}
    reports: Sequence[Report] = [line.reports[index] for index in sorted(line.reports)]
    if not reports:
        return {**answer, "findings": [], "checked": [], "rc": 2, "error": line.error}
    answer |= {"rc": exit_code(reports, fail_on), "seconds": sum(r.seconds for r in reports)}
    data = [report.as_json() for report in reports]
    if len(data) == 1:
        return {**data[0], **answer}
    return {
        **answer,
        "findings": [finding for one in data for finding in one["findings"]],
        "checked": sorted({name for one in data for name in one["checked"]}),
        "results": data,
    }
