"""An audit from beginning to end: gates, tests, verdict."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regard.audit.capture import check_capture
from regard.audit.downgrades import downgrades_of
from regard.audit.gates import decide
from regard.audit.inputs import Input, fingerprint
from regard.audit.measure import FEWEST, Measure
from regard.audit.measures import MEASURES, chosen
from regard.audit.protocol import Case, check_case
from regard.audit.sample import Sample
from regard.audit.selftest import control_gate
from regard.audit.store import Store
from regard.audit.verdict import Audit
from regard.audit.wording import judge, stopped
from regard.audit.worst import worst_inputs
from regard.errors import InputError, explain
from regard.version import __version__

__all__ = ["audit"]

Progress = Callable[[str, int, int], None]
"""Takes what is being done, how many inputs are done, and of how many."""


def audit(
    case: Case,
    inputs: Sequence[Input],
    *,
    n: int = 500,
    seed: int = 0,
    tests: Sequence[str] | None = None,
    budget: float | None = None,
    resume: str | Path | None = None,
    progress: Progress | None = None,
    command: str = "",
) -> Audit:
    """Find out what may be claimed from a model's attention weights.

    Parameters
    ----------
    case : Case
        The model and its weights (:mod:`regard.audit.protocol`).
    inputs : sequence of Input
        From where the model is used. One that is there again counts once: an interval over
        repeats would be too narrow. At most `n` of them, drawn at random, are looked at.
    n : int
        From 20.
    seed : int
        Of all drawing.
    tests : sequence of str, optional
        Names of tests; by default all but ``retrain``, which trains about ten models, and
        ``adversary_model``, which trains four for longer.
        ``erase_input`` always runs: the gates read it.
    budget : float, optional
        Seconds after which no further inputs are asked about; what is done counts.
    resume : path, optional
        A file that keeps what is measured; if it has some already, the audit goes on from
        there. Removed at the end of an audit that was not cut short.
    progress : callable, optional
    command : str
        What repeats the run, for the report.

    Returns
    -------
    audit : Audit

    Raises
    ------
    InputError
        Too few inputs, steps of pairs for a case that does not read them, an unknown test, or
        something that is no case.
    """
    began = time.monotonic()
    check_case(case)
    _refuse_steps(case, inputs)
    measures = chosen(tests)
    places, left_out = _drawn(inputs, n, seed)
    drawn = [inputs[place] for place in places]
    say = progress or (lambda what, done, of: None)

    say("capture", 0, 1)
    gates = check_capture(case, drawn)
    if all(gate.outcome != "failed" for gate in gates):
        say("control", 0, 1)
        gates.append(control_gate(seed))
    facts: dict[str, Any] = {
        "subject": case.name,
        "left_out": left_out,
        "seed": seed,
        "data": fingerprint(inputs),
        "version": __version__,
        "command": command,
    }
    if any(gate.outcome == "failed" for gate in gates):
        skipped = tuple((measure.name, "the audit was stopped") for measure in measures)
        verdict = stopped(gates, len(drawn), skipped)
        return Audit(
            n=len(drawn),
            verdict=verdict,
            tables=(),
            worst=(),
            seconds=time.monotonic() - began,
            **facts,
        )

    sample = Sample(case, drawn, seed=seed)
    key = f"{__version__} by text {case.name} {facts['data']} {n} {seed} {_answers_of(sample)}"
    store = Store(None if resume is None else Path(resume), key)
    deadline = None if budget is None else began + budget
    not_tested: list[tuple[str, str]] = []
    tables = []
    cut = False
    for measure in measures:
        missing = measure.missing(sample)
        if missing is not None:
            not_tested.append((measure.name, missing))
            continue
        done = _measured(measure, sample, store, deadline, say)
        size = measure.size(sample)
        if done < size:
            cut = True
            what = "inputs" if size == len(sample) else "trainings"
            late = f"the time was up after {done} of {size} {what}"
            not_tested.append((measure.name, late))
        if done >= measure.fewest:
            tables.append(measure.table(store.columns(measure.name), seed))
    if tests is None:
        not_tested += [
            (measure.name, "it trains models and has to be asked for")
            for measure in MEASURES
            if measure.trains and measure.missing(sample) is None
        ]
    erased = store.columns("erase_input")
    done = store.done("erase_input")
    gold = store.columns("gold_mass") if store.done("gold_mass") >= done else None
    gates += decide(erased, gold, seed=seed)
    verdict = judge(
        gates,
        erased,
        done,
        downgrades=downgrades_of(store),
        not_tested=not_tested,
        seed=seed,
    )
    if not cut:
        store.remove()
    return Audit(
        n=done,
        verdict=verdict,
        tables=tuple(tables),
        worst=worst_inputs(sample, places, erased),
        seconds=time.monotonic() - began,
        asked=sample.asked,
        **facts,
    )


def _measured(
    measure: Measure, sample: Sample, store: Store, deadline: float | None, say: Progress
) -> int:
    """Run a test on what is left of the inputs, as long as there is time."""
    done, size = store.done(measure.name), measure.size(sample)
    while done < size:
        late = deadline is not None and time.monotonic() > deadline
        # The gates' own test gets as many inputs as an interval needs, whatever the time.
        if late and not (measure is MEASURES[0] and done < FEWEST):
            break
        say(measure.name, done, size)
        step = FEWEST if late else measure.step
        chunk = range(done, min(done + step, size))
        columns = measure.run(sample, chunk)
        if not measure.trains:
            columns["text"] = [sample.inputs[k].text or f"input {k}" for k in chunk]
        store.add(measure.name, columns)
        done = chunk.stop
    say(measure.name, done, size)
    return done


def _drawn(
    inputs: Sequence[Input], n: int, seed: int
) -> tuple[list[int], tuple[tuple[str, int], ...]]:
    """Return the places of the inputs that are looked at, and what was left out."""
    usable = [place for place, one in enumerate(inputs) if len(one.free) >= 2]
    distinct = _distinct(inputs, usable)
    repeated = len(usable) - len(distinct)
    texts = len({inputs[place].text or place for place in distinct})
    if n < FEWEST or texts < FEWEST:
        again = f", {repeated} of them repeats" if repeated else ""
        again += f", steps of {texts} texts" if texts < len(distinct) else ""
        raise InputError(
            explain(
                "audit(): too few inputs",
                expected=f"at least {FEWEST} different texts, each with two tokens to erase",
                got=f"{len(usable)} of {len(inputs)}{again}, n={n}",
                because="an interval over fewer means nothing",
            )
        )
    random = np.random.default_rng([seed, 3])
    order = random.permutation(len(distinct))[:n]
    left_out = (
        ("fewer than two tokens", len(inputs) - len(usable)),
        ("repeated", repeated),
        ("not drawn", len(distinct) - len(order)),
    )
    return [distinct[k] for k in order], tuple(pair for pair in left_out if pair[1])


def _distinct(inputs: Sequence[Input], places: Sequence[int]) -> list[int]:
    """Return a place of each input that a model can tell apart, where one has marks of it."""
    found: dict[tuple[Any, ...], int] = {}
    for place in places:
        one = inputs[place]
        first = found.setdefault((one.tokens, one.before, one.fixed), place)
        if inputs[first].gold is None and one.gold is not None:
            found[one.tokens, one.before, one.fixed] = place
    return list(found.values())


def _refuse_steps(case: Case, inputs: Sequence[Input]) -> None:
    """Refuse steps of pairs where the case would answer each of them the same."""
    steps = sum(one.before is not None for one in inputs)
    if steps and not getattr(case, "reads_before", True):
        raise InputError(
            explain(
                "audit(): the inputs are steps of pairs, and the case does not read them",
                expected="texts: this case answers tokens, whatever was written before",
                got=f"{steps} of {len(inputs)} inputs with `before`, as source and target give",
                help="give texts, labelled ones in a *.jsonl file; a model that writes is "
                "regard.audit.from_regard(), or a case of your own that reads `before`",
            )
        )


def _answers_of(sample: Sample) -> str:
    # Another model under the same name answers otherwise.
    return f"{sample.probabilities[:, 0].sum():.9g}"
