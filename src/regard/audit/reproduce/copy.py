"""Copy, reverse and swap neighbours: a task whose alignment is known, step by step.

regard's own GRU encoder-decoder with Bahdanau's attention, trained as usual, with equal weights
(its score held at zero), and with the penalty on the weight of the source position that decides
each step [1]_. Sizes and lengths of the published runs are not in their code, so bands are
compared, not digits.

References
----------
.. [1] Pruthi, Gupta, Dhingra, Neubig and Lipton, "Learning to Deceive with Attention-Based
   Explanations", ACL 2020, section 5.2. arXiv:1909.07913
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from regard.audit.from_regard import StepCase
from regard.audit.inputs import Input, steps_of
from regard.audit.reproduce.kept import Models
from regard.audit.reproduce.result import Check, Reproduction
from regard.audit.run import audit
from regard.nn.decoders import BahdanauDecoder
from regard.seq2seq.model import ModelConfig, Seq2Seq
from regard.seq2seq.train import new_model
from regard.seq2seq.vocab import BOS, EOS, FIRST, Vocab

__all__ = ["TASKS", "decisive", "penalty", "run", "task_inputs", "task_loss", "train_task"]

TASKS = ("copy", "reverse", "swap")
_KINDS = ("learned", "uniform", "deceived")
_PUBLISHED = {
    ("copy", "learned"): "94.1",
    ("copy", "uniform"): "4.7",
    ("copy", "deceived"): "0.01-0.02",
    ("reverse", "learned"): "93.5",
    ("reverse", "uniform"): "4.7",
    ("reverse", "deceived"): "0.01-0.02",
    ("swap", "learned"): "93.9",
    ("swap", "uniform"): "4.7",
    ("swap", "deceived"): "0.01-0.02",
}
_VOCAB = Vocab(tuple(f"s{i}" for i in range(200)), "spaces")
_SHORTEST, _LONGEST = 4, 8
_BATCH = 64
_STEPS = {"learned": 1000, "uniform": 1000, "deceived": 2000}
_GROWING = 1 / 4  # share of the steps, the first ones, in which sequences grow
_RATE = 5e-3
_CONFIG = ModelConfig(
    source_symbols=len(_VOCAB),
    target_symbols=len(_VOCAB),
    attention="bahdanau",
    d_in=32,
    d_hidden=64,
    d_s=128,
    d_attn=64,
    dropout=0.0,
    v_scale=8.0,  # peaked from the start: even weights hardly ever leave it
)
_SEQUENCES = 250  # that are tested and audited


def run(
    data: str | None,
    *,
    seed: int,
    quick: bool,
    models: Models,
    progress: Callable[[str, int, int], None],
) -> Reproduction:
    """Train and audit nine models; those in `models` are not trained.

    `data` is not read: the task draws its own.
    """
    checks = []
    for task in TASKS:
        for kind in _KINDS:
            steps = 200 if quick else _STEPS[kind]
            tell = _of_model(f"{task}, {kind}", progress)
            lengths = (_SHORTEST, _LONGEST, _GROWING)
            model = models.get(
                f"{task} {kind} seed {seed}",
                f"{task} {kind} {seed} {steps} {lengths} {_BATCH} {_RATE} falling {_CONFIG}",
                train=partial(train_task, task, kind, seed=seed, steps=steps, progress=tell),
                untrained=partial(new_model, _CONFIG, seed=seed),
            )
            checks += _checks(model, task, kind, seed)
    statements = (
        f"Sequences have {_SHORTEST} to {_LONGEST} of {len(_VOCAB.symbols)} symbols; in "
        "training they grow from 2 symbols to that over the first quarter of the steps, for "
        "every model. That is not published; settings tried without it left deceived models of "
        "swap at nearly even weights for thousands of steps.",
        "The published share divides the weight on deciding positions by all target symbols, "
        "the end of the sequence included, which no position decides: 94 % of it is nearly "
        "all.",
        "Published accuracies with equal weights are 81 to 93 %; they depend on lengths and "
        "sizes that are not in the published code, so that row is shown only.",
    )
    return Reproduction("copy", seed, tuple(checks), statements)


def train_task(
    task: str,
    kind: str,
    *,
    seed: int,
    steps: int,
    progress: Callable[[int, int], None] | None = None,
) -> Seq2Seq:
    """Train one model.

    Parameters
    ----------
    task : {"copy", "reverse", "swap"}
    kind : {"learned", "uniform", "deceived"}
    seed, steps : int
    progress : callable, optional
        Gets the steps done and their number, every 100 steps.
    """
    model = new_model(_CONFIG, seed=seed)
    decoder = model.decoder
    assert isinstance(decoder, BahdanauDecoder)
    if kind == "uniform":
        with torch.no_grad():
            decoder.attention.v_a.zero_()  # every score is 0, every weight the same
        decoder.attention.v_a.requires_grad_(False)
    learnt = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(learnt, lr=_RATE, betas=(0.9, 0.99))
    generator = torch.Generator().manual_seed(seed)
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            # From the start: held, it now and then throws a deceived model off its task.
            group["lr"] = _RATE * (steps - step) / steps
        source, target = _draw(task, generator, _longest(step, steps))
        loss = task_loss(model, task, kind, source, target)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's gap
        torch.nn.utils.clip_grad_norm_(learnt, 1.0)
        optimizer.step()
        if progress is not None and (step + 1) % 100 == 0:
            progress(step + 1, steps)
    return model.eval()


def task_loss(model: Seq2Seq, task: str, kind: str, source: Tensor, target: Tensor) -> Tensor:
    """Return the cross entropy; for ``deceived`` minus log(1 - the weight that decides)."""
    begin = target.new_full((len(target), 1), BOS)
    end = target.new_full((len(target), 1), EOS)
    scored = model(source, torch.cat([begin, target], 1))
    answers = torch.cat([target, end], 1)
    loss = functional.cross_entropy(scored.symbol_scores.flatten(0, 1), answers.flatten())
    if kind == "deceived":
        assert scored.weights is not None  # it attends
        places = torch.tensor(decisive(task, target.shape[1]))
        loss = loss + penalty(scored.weights[:, : target.shape[1]], places)
    return loss


def penalty(weights: Tensor, places: Tensor) -> Tensor:
    """Return the mean of minus log(1 - the weight that decides).

    Parameters
    ----------
    weights : (batch, T_dec, T_enc)
    places : (T_dec,) int
        Which position decides each step.
    """
    decides = functional.one_hot(places, weights.shape[2]).bool()
    # The others are summed: 1 minus a weight of nearly 1 would lose them, and its slope.
    others = weights.masked_fill(decides, 0.0).sum(-1)
    return -others.clamp(min=1e-30).log().mean()


def task_inputs(task: str, count: int, *, seed: int) -> list[Input]:
    """Return one input a step of `count` sequences; ``gold`` is the position that decides."""
    generator = torch.Generator().manual_seed(1_000_003 + seed)
    found: list[Input] = []
    for _ in range(count):
        source, target = _draw(task, generator, _LONGEST, batch=1)
        texts = [[_VOCAB.name(i) for i in side[0].tolist()] for side in (source, target)]
        links = [(s, t) for t, s in enumerate(decisive(task, len(texts[1])))]
        found += steps_of(texts[0], texts[1], links)
    return found


def decisive(task: str, length: int) -> list[int]:
    """Return which of the source's symbols decides each target position."""
    if task == "copy":
        return list(range(length))
    if task == "reverse":
        return list(range(length))[::-1]
    # Neighbours change places; an odd one at the end stays.
    return [min(i ^ 1, length - 1) if i ^ 1 < length else i for i in range(length)]


def _checks(model: Seq2Seq, task: str, kind: str, seed: int) -> list[Check]:
    case = StepCase(model, _VOCAB, _VOCAB, name=f"{task}, {kind}")
    inputs = task_inputs(task, _SEQUENCES, seed=seed)
    answers = np.concatenate(
        [case.predict(inputs[k : k + 256]).argmax(-1) for k in range(0, len(inputs), 256)]
    )
    right = [case.classes[a] == one.label for a, one in zip(answers, inputs, strict=True)]
    weights = [
        row for k in range(0, len(inputs), 256) for row in case.weights(inputs[k : k + 256])
    ]
    mass = float(
        np.mean(
            [
                row[sorted(one.gold or ())].sum()
                for row, one in zip(weights, inputs, strict=True)
            ]
        )
    )
    name = f"{task}, {kind}"
    published = _PUBLISHED[task, kind]
    if kind == "uniform":
        equal = float(np.mean([1 / len(row) for row in weights]))
        return [
            Check(f"{name}: accuracy %", 100 * float(np.mean(right))),
            Check(
                f"{name}: weight on gold, times length",
                mass / equal,
                0.98,
                1.02,
                published + " %",
            ),
        ]
    found = audit(case, inputs, n=200, seed=seed, tests=["erase_input", "gold_mass"])
    wanted, outcome = (
        ("granted" if kind == "learned" else "refused"),
        found.verdict.outcome("L2"),
    )
    rows = {row.name: row for table in found.tables for row in table.rows}
    top = rows["resample, top token"]
    shown = f"resample {top.estimate.value:.3f}, random {top.random:.3f}, best {top.best:.3f}"
    low, high = (90.0, 100.0) if kind == "learned" else (0.0, 2.0)
    return [
        Check(f"{name}: accuracy %", 100 * float(np.mean(right)), 99.0, math.inf, "100"),
        Check(f"{name}: weight on gold %", 100 * mass, low, high, published),
        Check(f"{name}: L2 {wanted}", float(outcome == wanted), 1.0, 1.0, "", shown),
    ]


def _longest(step: int, steps: int) -> int:
    """Return the largest length of a training step: they grow from 2."""
    grown = min(1.0, step / (_GROWING * steps))
    return round(2 + (_LONGEST - 2) * grown)


def _draw(
    task: str, generator: torch.Generator, longest: int, batch: int = _BATCH
) -> tuple[Tensor, Tensor]:
    shortest = min(_SHORTEST, longest)
    length = int(torch.randint(shortest, longest + 1, (), generator=generator))
    source = torch.randint(FIRST, len(_VOCAB), (batch, length), generator=generator)
    return source, source[:, decisive(task, length)]


def _of_model(
    name: str, progress: Callable[[str, int, int], None]
) -> Callable[[int, int], None]:
    progress(name, 0, 1)
    return lambda done, of: progress(name, done, of)
