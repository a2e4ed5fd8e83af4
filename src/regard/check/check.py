"""The pipeline of one target: contract, relations, repair, cause, report.

It runs where the user's code runs, so in a worker process (:mod:`regard.check.worker`) unless
the caller trusts the code. Nothing here prints or writes.
"""

import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from regard.check.apply import apply_edits
from regard.check.cause import causes
from regard.check.contract import Contract
from regard.check.finding import Evidence, Finding, Location, Report
from regard.check.loading import prepare
from regard.check.regress import write_test
from regard.check.relations.base import Case, Results, ask
from regard.check.repair import Search, search
from regard.check.roles import Guess, guess
from regard.check.roles.reading import read
from regard.check.stated import fitted, refuse_init_of_function, with_polarity
from regard.check.subject import Crash, Loaded, TookTooLong, limit, load, surroundings
from regard.version import __version__

__all__ = ["Options", "check_source"]


@dataclass(frozen=True)
class Options:
    """How far a check goes.

    ``seconds`` bounds the search for a repair; ``repair=False`` skips it. ``flags`` holds
    statements given on the command line, in the contract's form. ``write_test`` asks for
    the text of a regression test, of the first finding or of the one with that fingerprint;
    its header bears ``date``. ``package`` and ``scope``
    are the text's surroundings (:func:`regard.check.subject.surroundings`).
    """

    seed: int = 0
    seconds: float = 8.0
    repair: bool = True
    package: str = ""
    scope: Mapping[str, Any] | None = None
    write_test: bool | str = False
    date: str = ""
    flags: Mapping[str, Any] | None = None


def check_source(
    source: str,
    path: str,
    entry: str,
    contract: Mapping[str, Any] | None = None,
    options: Options | None = None,
) -> Report:
    """Check one function or module of a source text.

    Parameters
    ----------
    source : str
        The whole text of the user's file; it is executed.
    path : str
        Its name, for tracebacks and locations.
    entry : str
        ``name`` or ``Class.method``.
    contract : mapping, optional
        The declared contract in its JSON form; what is missing is guessed.
    options : Options, optional

    Returns
    -------
    report : Report
        With at least one finding (RG901 to RG904) where nothing could be checked.

    Raises
    ------
    InputError
        If the contract states something unknown.
    """
    started = time.monotonic()
    options = options or Options()
    declared = None if contract is None else Contract.from_mapping(contract)
    prepare(source)
    with surroundings(path, package=options.package, scope=options.scope):
        try:
            with limit(20.0):
                loaded = load(source, path, entry)
        except TookTooLong:
            loaded = Crash("Timeout", "the file did not finish to run", 1, (1,), "load")
        if isinstance(loaded, Crash):
            report = _unchecked("RG901", "could-not-load", path, entry, loaded)
        else:
            report = _check(loaded, declared, options)
    return replace(
        report,
        source=source,
        path=path,
        seed=options.seed,
        seconds=time.monotonic() - started,
        versions=_versions(),
    )


def _check(loaded: Loaded, declared: Contract | None, options: Options) -> Report:
    flags = dict(options.flags or {})
    refuse_init_of_function(loaded, declared, flags)
    if declared is not None and declared.mask is not None:
        flags.setdefault("mask", declared.mask)
    declared = with_polarity(loaded, declared, flags.get("mask"))
    guessed = guess(loaded, declared=declared, flags=flags)
    contract = guessed.contract
    target = f"{loaded.path}:{loaded.entry}"
    if not contract.inputs:
        line = guessed.crash.line if guessed.crash is not None else 1
        crash = Crash(
            "Inputs", "; ".join(guessed.assumptions) or "nothing known", line, (line,)
        )
        return _unchecked("RG902", "could-not-build-inputs", loaded.path, loaded.entry, crash)
    contract = fitted(contract, declared, flags)
    case = Case(loaded, contract, seed=options.seed)
    results = ask(case)
    if not results.verdicts:
        crash = Crash("Relations", "no relation applies to this target", 1, (1,))
        return _unchecked("RG904", "nothing-checked", loaded.path, loaded.entry, crash)
    found: Search | None = None
    if options.repair and any(v.level != "note" for v in results.failed):
        found = search(
            loaded.source,
            loaded.path,
            loaded.entry,
            contract,
            results.failed,
            lines=_suspects(results),
            trace=_trace(case),
            seconds=options.seconds,
            seed=options.seed,
        )
    findings = causes(case, results, found)
    stands = {v.relation: v.depends_on for v in results.failed}
    findings = [_honest(f, guessed, stands.get(f.evidence.relation, ())) for f in findings]
    return Report(
        target=target,
        findings=tuple(findings),
        checked=results.names,
        not_checked=_not_checked(loaded, contract, results, found, _unnamed(case)),
        assumptions=guessed.assumptions,
        signature=f"{loaded.entry}({', '.join(contract.inputs)})",
        sizes=tuple(case.bench(i).sizes.shown(contract.every_axis) for i in (0, 1)),
        relations=_table(results, found),
        test=_test(case, findings, found, options),
        **_pictures(case, found),
    )


def _test(case: Case, findings: list[Finding], found: Search | None, options: Options) -> str:
    wanted = options.write_test
    if isinstance(wanted, str):
        chosen = next((f for f in findings if f.fingerprint == wanted), None)
    else:
        chosen = next((f for f in findings if f.level != "note"), None) if wanted else None
    if chosen is None:
        return ""
    source, repaired = case.loaded.source, None
    if chosen is findings[0] and found is not None and found.survivors:
        repaired = found.survivors[0].source
    elif chosen.fix is not None and chosen.fix.edits and chosen.fix.status != "sketch":
        repaired = apply_edits(source, chosen.fix.edits)
    test = write_test(case.loaded, case.contract, chosen, repaired, date=options.date)
    return test.text if test is not None else ""


def _honest(finding: Finding, guessed: Guess, stands: tuple[str, ...]) -> Finding:
    """A proof stands on the contract: where that was guessed, it holds if the guess does.

    ``stands`` names the fields without which the failure would mean nothing.
    """
    worded = [f for f in stands if f in guessed.worded]
    if (guessed.confident and not worded) or not finding.fixes:
        return finding
    if guessed.confident:
        said = (f"{f} = {getattr(guessed.contract, f)}" for f in worded)
        condition = f"the author's words mean {', '.join(said)}"
    else:
        condition = "the contract was guessed: " + "; ".join(guessed.assumptions[:3])
    fixes = tuple(
        replace(f, status="proven-if", condition=f.condition or condition)
        if f.status == "proven"
        else f
        for f in finding.fixes
    )
    return replace(finding, fixes=fixes)


def _suspects(results: Results) -> tuple[int, ...]:
    lines = [line for v in results.failed for line in v.lines]
    return tuple(dict.fromkeys(lines))


def _trace(case: Case) -> Any:
    try:
        return case.bench(0).trace
    except TookTooLong:
        return None


def _not_checked(
    loaded: Loaded, contract: Contract, results: Results, found: Search | None, unnamed: int
) -> tuple[str, ...]:
    said = []
    if unnamed:
        said.append(f"{unnamed} more of the results (name all with --returns)")
    if any(v.relation in ("runs", "loads") and v.state == "fails" for v in results.verdicts):
        said.append("every other relation: the code does not run")
    if left := _left_alone(loaded, contract):
        said.append(f"what {', '.join(left)} changes: left at the default (--axes gives one)")
    if loaded.library != "torch":
        said.append("gradients (the code is not PyTorch)")
    if contract.score is None:
        said.append("the score's formula (declare it with --score)")
    if contract.dtype == "float32":
        said.append("float16 (--dtype float16)")
    if found is not None and not found.complete:
        said.append(f"some repairs: the search stopped after {found.tried} candidates")
    return tuple(said)


def _left_alone(loaded: Loaded, contract: Contract) -> list[str]:
    """Arguments that need not be given and were not."""
    given = {*contract.inputs, *contract.values}
    try:
        parameters = read(loaded.source, loaded.entry).parameters
    except (SyntaxError, ValueError, RecursionError):
        return []
    spare = (p for p in parameters if p.has_default and p.default is None and not p.star)
    return [f"`{each.name}`" for each in spare if each.name not in given]


def _unnamed(case: Case) -> int:
    """How many results come back besides those that the contract names."""
    try:
        came = case.bench(0).base
    except TookTooLong:
        return 0
    outputs = getattr(came, "outputs", ())  # a crash has none
    named = len(case.contract.returns)
    return max(len(outputs) - named, 0) if named else 0


def _table(results: Results, found: Search | None) -> tuple[Mapping[str, str], ...]:
    after: dict[str, str] = {}
    if found is not None and found.survivors:
        after = {v.relation: v.state for v in found.survivors[0].results.verdicts}
    before: dict[str, str] = {}
    for verdict in results.verdicts:
        if before.get(verdict.relation) != "fails":
            before[verdict.relation] = verdict.state
    return tuple(
        {"name": name, "before": state, "after": after.get(name, "")}
        for name, state in before.items()
    )


def _pictures(case: Case, found: Search | None) -> dict[str, Any]:
    """Weights of one example before and after the first repair, for the pages."""
    pictures: dict[str, Any] = {"weights_before": _weights(case)}
    survivors = found.survivors if found is not None else ()
    if survivors:
        mended = load(survivors[0].source, case.loaded.path, case.loaded.entry)
        if isinstance(mended, Loaded):
            pictures["weights_after"] = _weights(Case(mended, case.contract, seed=case.seed))
    return pictures


def _weights(case: Case) -> tuple[tuple[float, ...], ...]:
    trace = _trace(case)
    if not getattr(trace, "sites", ()):  # a crash has none
        return ()
    array = trace.sites[0].weights.value
    while array.ndim > 2:
        array = array[-1]
    if array.ndim < 2:
        array = array.reshape(1, -1)
    return tuple(tuple(float(x) for x in row) for row in array[:16, :24])


def _unchecked(code: str, name: str, path: str, entry: str, crash: Crash) -> Report:
    line = max(1, crash.line)
    message = f"{crash.kind}: {crash.message}" if crash.kind[0].isupper() else crash.message
    finding = Finding(
        code,
        name,
        "error",
        f"{path}:{entry}",
        message.splitlines()[0][:300],
        Location(path, line, 1, line, 1),
        Evidence("could-check", "the code loads, runs and is asked at least one relation"),
        fixes=(),
        fingerprint=f"{code}:{entry}",
    )
    return Report(f"{path}:{entry}", (finding,))


def _versions() -> dict[str, str]:
    versions = {"regard": __version__, "python": platform.python_version()}
    for name in ("numpy", "torch"):
        module = sys.modules.get(name)
        if module is not None:
            versions[name] = str(getattr(module, "__version__", ""))
    return versions
