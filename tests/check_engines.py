"""Stand-ins for the engine of `regard check`, to test its processes by themselves."""

import contextlib
import dataclasses
import json
import sys
import time
import types
from typing import Any

from regard.check.finding import Edit, Evidence, Finding, Fix, Location, Proof, Report
from regard.errors import InputError, explain


@dataclasses.dataclass(frozen=True)
class Options:
    seed: int = 0
    repair: bool = True
    package: str = ""
    flags: Any = None
    write_test: bool = False
    date: str = ""

    def told(self):
        return {"seed": self.seed, "repair": self.repair, "flags": self.flags}


def call(source, path, entry, contract, options):
    """Run the file, call the name without arguments, and report what came back."""
    module = types.ModuleType("subject")
    module.__file__, module.__package__ = path, options.package
    exec(compile(source, path, "exec", dont_inherit=True), module.__dict__)
    value = module
    for part in entry.split("."):
        value = getattr(value, part)
    return Report(
        f"{path}:{entry}",
        checked=("it-returns",),
        signature=repr(value()),
        assumptions=(repr(contract), repr(options.told())),
        seed=options.seed,
        path=path,
        source=source,
        versions={"modules": " ".join(sorted({"numpy", "torch"} & set(sys.modules)))},
    )


def swap(source, path, entry, contract, options):
    """Find every BAD word and offer to write GOOD."""
    findings = []
    for number, line in enumerate(source.split("\n"), 1):
        column = line.find("BAD") + 1
        if not column or line.lstrip().startswith("#"):
            continue
        edit = Edit(number, column, number, column + 3, "GOOD")
        findings.append(
            Finding(
                code="RG301",
                name="softmax-axis",
                level="error",
                target=f"{path}:{entry}",
                message="`BAD` sums to 1 over T_dec",
                location=Location(path, number, column, number, column + 3),
                evidence=Evidence("weights-sum-to-one", "sum = 1"),
                fixes=(Fix("proven", (edit,), proof=Proof(6, 12, 12, 3)),),
                fingerprint=f"RG301:{path}:{number}",
            )
        )
    return Report(
        f"{path}:{entry}", tuple(findings), ("weights-sum-to-one",), source=source, path=path
    )


def tested(source, path, entry, contract, options):
    """Write a test, as asked."""
    report = swap(source, path, entry, contract, options)
    if not report.findings or not options.write_test:
        return report
    return dataclasses.replace(report, test=f"# keeps RG301 away, {options.date}\n")


def echo(source, path, entry, contract, options):
    """Report what was asked."""
    told = {"contract": contract, "options": options.told()}
    return Report(f"{path}:{entry}", (), ("echo",), assumptions=(json.dumps(told),), path=path)


def sleep(source, path, entry, contract, options):
    """Take longer than anyone waits."""
    time.sleep(600)


def search(source, path, entry, contract, options):
    """Report a crash as a bug after trying an edit, as an engine does that knows no limits."""
    try:
        call(source, path, entry, contract, options)
    except Exception as error:
        crash = f"{type(error).__name__}: {error}"
    with contextlib.suppress(Exception):
        call(source.replace("3", "5"), path, entry, contract, options)
    location = Location(path, 3)
    finding = Finding(
        "RG101",
        "axes-do-not-meet",
        "error",
        path,
        "m",
        location,
        Evidence("a", "", quote=crash),
    )
    return Report(f"{path}:{entry}", (finding,), ("runs",), path=path)


def refuse(source, path, entry, contract, options):
    """Refuse what is stated."""
    raise InputError(explain("check: no such thing", expected="another", got="this"))
