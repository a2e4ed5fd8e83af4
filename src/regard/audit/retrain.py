"""Train again and compare: equal weights, other seeds, weights frozen from elsewhere, deceived.

Equal weights ask whether the task needs attention [1]_; other seeds, how far one map is the
task's and how far the seed's; the diagnostic, whether a model that encodes every token by
itself learns more from the audited model's weights than from equal ones or from an adversary's.
A deceived twin shows that for this task and architecture the audit can say no.

References
----------
.. [1] Wiegreffe and Pinter, "Attention is not not Explanation", EMNLP 2019, sections 3 and 4.
   arXiv:1908.04626
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from regard.audit import erase_input
from regard.audit.adversary_exact import band, farthest, one_logit
from regard.audit.distances import jensen_shannon
from regard.audit.gates import gain_of
from regard.audit.inputs import Input
from regard.audit.interval import Estimate
from regard.audit.measure import Columns, Measure
from regard.audit.protocol import Numbers, ReadsOut, Trainable
from regard.audit.sample import Sample, asked_in_batches
from regard.audit.uniform import equal_weights
from regard.audit.verdict import Row, Table

__all__ = ["KINDS", "MEASURE", "accuracies", "plan", "run"]

_SEEDS = 3
_COMPARED = 200  # inputs on which maps are compared
_ERASED = 60  # inputs on which the deceived twin is audited
KINDS = {
    "learned": "learned attention",
    "uniform": "equal weights",
    "alone, learned": "each token alone, weights of its own",
    "alone, uniform": "each token alone, equal weights",
    "alone, base": "each token alone, the audited model's weights",
    "alone, adversary": "each token alone, an adversary's weights",
    "deceived": "deceived twin (lambda 1)",
}


def plan(sample: Sample) -> list[tuple[str, int]]:
    """Return the trainings: what, and with which seed."""
    case = sample.case
    first = sample.seed + 1
    found = [(kind, first + k) for kind in ("learned", "uniform") for k in range(_SEEDS)]
    found += [("alone, learned", first), ("alone, uniform", first), ("alone, base", first)]
    if isinstance(case, ReadsOut) and sample.probabilities.shape[1] == 2:
        found.append(("alone, adversary", first))
    if getattr(case, "deciding", None):
        found.append(("deceived", first))
    return found


def run(sample: Sample, chunk: Sequence[int]) -> dict[str, list[Any]]:
    """Return what some trainings gave.

    Returns
    -------
    columns : dict
        ``kind``; ``accuracy``; ``f1`` (None where there are not two classes); ``divergence`` of
        its weights from the audited model's, the mean over inputs; ``to equal``, that of the
        audited model's weights from equal ones; ``share``: F of a deceived twin, else None.
    """
    case = sample.case
    assert isinstance(case, Trainable)  # or `missing` had said so
    trainings = plan(sample)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("kind", "accuracy", "f1", "divergence", "to equal", "share")
    }
    numbers = range(min(len(sample), _COMPARED))
    for place in chunk:
        kind, seed = trainings[place]
        trained = case.train(seed=seed, **_options(sample, kind))
        rows = asked_in_batches(trained.case.weights, [sample.inputs[k] for k in numbers])
        apart = [
            float(jensen_shannon(sample.weights[k], row))
            for k, row in zip(numbers, rows, strict=True)
        ]
        equal = [
            float(jensen_shannon(sample.weights[k], equal_weights(sample, k))) for k in numbers
        ]
        columns["kind"].append(kind)
        columns["accuracy"].append(trained.accuracy)
        columns["f1"].append(trained.f1)
        columns["divergence"].append(float(np.mean(apart)))
        columns["to equal"].append(float(np.mean(equal)))
        share = None
        if kind == "deceived":
            twin = Sample(trained.case, sample.inputs[:_ERASED], seed=sample.seed)
            erased = erase_input.run(twin, range(len(twin)))
            share = gain_of(erased, "delete", "top1", seed=sample.seed).value
        columns["share"].append(share)
    return columns


def accuracies(columns: Columns, kind: str, figure: str = "accuracy") -> list[float]:
    """Return a figure of all trainings of a kind."""
    pairs = zip(columns.get("kind", ()), columns.get(figure, ()), strict=True)
    return [value for name, value in pairs if name == kind and value is not None]


def table(columns: Columns, seed: int) -> Table:
    """Return accuracies, from the lowest to the highest of a kind's seeds."""
    rows = []
    for kind, title in KINDS.items():
        for figure in ("accuracy", "f1"):
            values = accuracies(columns, kind, figure)
            if values:
                rows.append(Row(f"{title}: {figure}", _range(values)))
    apart = accuracies(columns, "learned", "divergence")
    if apart:
        rows.append(Row("weights of other seeds from these (JSD)", _range(apart)))
        rows.append(Row("equal weights from these (JSD)", _range(columns["to equal"])))
    share = accuracies(columns, "deceived", "share")
    if share:
        rows.append(Row("deceived twin: F with one token", _range(share)))
    return Table(
        "retrain",
        "Trained again (in brackets: lowest and highest of the seeds)",
        "whether the task needs attention, how far a map is the seed's, and that a twin which "
        "hides can be told",
        "what the audited model itself does: these are other models",
        tuple(rows),
    )


def missing(sample: Sample) -> str | None:
    """Return why nothing can be trained again, or None."""
    return None if isinstance(sample.case, Trainable) else "the case has no train"


def _options(sample: Sample, kind: str) -> dict[str, Any]:
    case = sample.case
    if kind == "uniform":
        return {"attention": "uniform"}
    if kind == "deceived":
        return {"penalty": 1.0}
    if not kind.startswith("alone"):
        return {}
    given = kind.partition(", ")[2]
    if given == "base":
        frozen: Callable[[Sequence[Input]], Sequence[Numbers]] = lambda batch: asked_in_batches(  # noqa: E731 - closes over the case
            case.weights, batch
        )
        return {"attention": "frozen", "frozen": frozen, "context": False}
    if given == "adversary":
        return {"attention": "frozen", "frozen": _adversary(case), "context": False}
    return {"attention": given, "context": False}


def _adversary(case: Any) -> Callable[[Sequence[Input]], Sequence[Numbers]]:
    def weights(batch: Sequence[Input]) -> Sequence[Numbers]:
        found = []
        own, answers, reads = (
            asked_in_batches(call, batch)
            for call in (case.weights, case.predict, case.read_out)
        )
        for row, answer, read in zip(own, answers, reads, strict=True):
            scores, bias = one_logit(read.scores, np.asarray(read.b))
            other, _ = farthest(np.asarray(row), scores, *band(float(answer[1]), bias))
            found.append(other)
        return found

    return weights


def _range(values: Sequence[float]) -> Estimate:
    return Estimate(float(np.mean(values)), min(values), max(values), len(values))


MEASURE = Measure(
    "retrain", run, table, missing, lambda sample: len(plan(sample)), 1, 1, trains=True
)
