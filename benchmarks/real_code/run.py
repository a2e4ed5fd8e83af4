"""Ask the check of subjects, each in a process of its own with a limit of time."""

import multiprocessing
import time
from collections.abc import Callable, Iterator
from typing import Any

from real_code.subject import Skip, Subject

__all__ = ["ask", "choose", "each"]

SECONDS = 40.0


def choose(forms: list[Subject]) -> Subject | Skip:
    """The first form that runs at two sets of sizes and returns the declared context."""
    from regard.check.contract import Contract  # noqa: PLC0415
    from regard.check.relations.base import Case  # noqa: PLC0415
    from regard.check.subject import Crash, limit, load  # noqa: PLC0415

    why = ""
    unbuilt: set[str] = set()
    for form in forms:
        assert form.contract is not None
        built = form.source.split("def forward", maxsplit=1)[0]
        if built in unbuilt:
            continue
        with limit(40.0):
            loaded = load(form.source, _path(form), form.entry)
            if isinstance(loaded, Crash):
                why = _farther(why, f"{loaded.kind}: {loaded.message}")
                continue
            plain = {k: v for k, v in form.contract.items() if k != "extra keys"}
            case = Case(loaded, Contract.from_mapping(plain))
            bench = case.bench(0)
            base = bench.base
            other = case.bench(1).base
        crash = next((b for b in (base, other) if isinstance(b, Crash)), None)
        if crash is not None and form.certain:
            return form
        if crash is not None:
            if crash.stage == "build":
                unbuilt.add(built)
            why = _farther(why, f"{crash.stage}: {crash.kind}: {crash.message}")
            continue
        wanted = bench.sizes.shape(form.contract["returns"][0]["axes"])
        shapes = [o.shape for o in base.outputs if o is not None]
        if "extra keys" in form.contract and (not shapes or shapes[0] != wanted):
            why = _farther(why, f"its result is {shapes[:1]}, not {wanted}")
            continue
        return _with_weights(form, bench.sizes, shapes)
    first = forms[0]
    error = why.splitlines()[0][:200] if why else ""
    return Skip(first.name, first.library, first.family, first.doubt or error, error)


def _farther(one: str, other: str) -> str:
    """Of two reasons that of the form that came farther: built, called, a result.

    What is not installed is farther than any other error: nothing given to it would help.
    """
    stages = ("call: NameError", "call: Optional", "its result", "call:", "build:")

    def left(why: str) -> int:
        return next((i for i, stage in enumerate(stages) if why.startswith(stage)), 9)

    return one if one and left(one) <= left(other) else other


def _with_weights(form: Subject, sizes: Any, shapes: list[tuple[int, ...]]) -> Subject:
    """Declare the alignment where a second result has its axes."""
    assert form.contract is not None
    if "extra keys" not in form.contract:
        return form  # declared by hand
    contract = {k: v for k, v in form.contract.items() if k != "extra keys"}
    cross = "T_dec" in contract["returns"][0]["axes"]
    axes = "batch heads T_dec T_enc" if cross else "batch heads T T"
    if form.contract.get("extra keys"):
        pass  # the weights of the keys that were given sum to less than one
    elif len(shapes) > 1 and shapes[1] == sizes.shape(axes):
        contract["returns"] = [*contract["returns"], {"name": "weights", "axes": axes}]
        contract["weights"] = {"output": "weights", "sums_to_one_over": -1}
    else:
        # Whether the sizes given for heads are those of a softmax, nothing tells.
        contract["init"] = {**contract["init"], "heads": "heads*1"}
    return Subject(
        form.name, form.library, form.family, form.source, form.entry, contract, form.package
    )


def ask(subject: Subject, path: str = "") -> dict[str, Any]:
    """Check one subject here and now; ``path`` is that of a text that is a file."""
    from regard.check.check import Options, check_source  # noqa: PLC0415

    started = time.monotonic()
    options = Options(repair=False, package=subject.package)
    report = check_source(
        subject.source, path or _path(subject), subject.entry, subject.contract, options
    )
    return {
        "name": subject.name,
        "library": subject.library,
        "family": subject.family,
        "mode": "contract" if subject.contract is not None else "zero",
        "seconds": round(time.monotonic() - started, 2),
        "relations": len(report.checked),
        "findings": [
            {
                "code": f.code,
                "level": f.level,
                "message": f.message,
                "line": f.location.line,
                "measured": [
                    f"{m.what}: {m.value} ({m.required})" for m in f.evidence.measured
                ],
                "relation": f.evidence.relation,
                "depends_on": f.depends_on,
            }
            for f in report.findings
        ],
    }


def _path(subject: Subject) -> str:
    return f"{subject.family.replace('/', '_').replace('.', '_')}_{subject.entry}.py"


def each(
    work: Callable[[], Iterator[dict[str, Any]]], seconds: float
) -> Iterator[dict[str, Any]]:
    """Run a generator in a process of its own and yield what it yields, until time is up."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(work, there))
    process.start()
    there.close()
    try:
        while True:
            if not here.poll(seconds):
                yield {"lost": f"nothing within {seconds:.0f} s"}
                return
            try:
                row = here.recv()
            except EOFError:
                yield {"lost": "the process ended"}
                return
            if row is None:
                return
            yield row
    finally:
        process.kill()
        process.join()


def _serve(work: Callable[[], Iterator[dict[str, Any]]], pipe: Any) -> None:
    import os  # noqa: PLC0415

    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        for row in work():
            pipe.send(row)
        pipe.send(None)
    finally:
        pipe.close()
        os._exit(0)
