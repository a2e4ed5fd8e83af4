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

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from regard.audit.from_regard import StepCase
from regard.audit.inputs import Input, steps_of
from regard.audit.reproduce.result import Check, Reproduction
from regard.audit.run import audit
from regard.nn.decoders import BahdanauDecoder
from regard.seq2seq.model import ModelConfig, Seq2Seq
from regard.seq2seq.train import new_model
from regard.seq2seq.vocab import BOS, EOS, FIRST, Vocab

__all__ = ["TASKS", "decisive", "run", "task_inputs", "task_loss", "train_task"]

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
# Many symbols: of few, a state knows its neighbours too, and any of them may be attended.
_VOCAB = Vocab(tuple(f"s{i}" for i in range(400)), "spaces")
_SHORTEST, _LONGEST = 4, 10
_BATCH = 64


def run(
    data: str | None, *, seed: int, quick: bool, progress: Callable[[str, int, int], None]
) -> Reproduction:
    """Train and audit nine models; `data` is not read, the task draws its own."""
    checks = []
    steps = dict.fromkeys(_KINDS, 200 if quick else 1200)
    if not quick:
        steps["deceived"] = 4000
    for task in TASKS:
        for kind in _KINDS:
            progress(f"{task}, {kind}", 0, 1)
            model = train_task(task, kind, seed=seed, steps=steps[kind])
            checks += _checks(model, task, kind, seed)
            progress(f"{task}, {kind}", 1, 1)
    statements = (
        "Deceived models learn slowly here: with so many symbols a state hardly knows its "
        "neighbours, and weight stays on the deciding position for long; with few symbols the "
        "learned weights spread instead. Where a band is missed, it is missed for that.",
        "Published accuracies with equal weights are 81 to 93 %; they depend on lengths and "
        "sizes that are not published, so that row is shown only.",
    )
    return Reproduction("copy", seed, tuple(checks), statements)


def train_task(task: str, kind: str, *, seed: int, steps: int) -> Seq2Seq:
    """Train one model.

    Parameters
    ----------
    task : {"copy", "reverse", "swap"}
    kind : {"learned", "uniform", "deceived"}
    seed, steps : int
    """
    config = ModelConfig(
        source_symbols=len(_VOCAB),
        target_symbols=len(_VOCAB),
        attention="bahdanau",
        d_in=32,
        d_hidden=64,
        d_s=128,
        d_attn=64,
        dropout=0.0,
        v_scale=1.0,
    )
    model = new_model(config, seed=seed)
    decoder = model.decoder
    assert isinstance(decoder, BahdanauDecoder)
    if kind == "uniform":
        with torch.no_grad():
            decoder.attention.v_a.zero_()  # every score is 0, every weight the same
        decoder.attention.v_a.requires_grad_(False)
    learnt = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(learnt, lr=5e-3, betas=(0.9, 0.99))
    generator = torch.Generator().manual_seed(seed)
    model.train()
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = 5e-3 * (0.02 + 0.98 * (1 + math.cos(math.pi * step / steps)) / 2)
        source, target = _draw(task, generator)
        loss = task_loss(model, task, kind, source, target)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's gap
        torch.nn.utils.clip_grad_norm_(learnt, 1.0)
        optimizer.step()
    return model.eval()


def task_loss(model: Seq2Seq, task: str, kind: str, source: Tensor, target: Tensor) -> Tensor:
    """Return the cross entropy; for ``deceived`` minus log(1 - the weight that decides)."""
    begin = target.new_full((len(target), 1), BOS)
    end = target.new_full((len(target), 1), EOS)
    scored = model(source, torch.cat([begin, target], 1))
    answers = torch.cat([target, end], 1)
    loss = functional.cross_entropy(scored.symbol_scores.flatten(0, 1), answers.flatten())
    if kind == "deceived":
        places = torch.tensor(decisive(task, target.shape[1]))
        rows = scored.weights[:, : target.shape[1]]
        mass = rows.gather(2, places[None, :, None].expand(len(target), -1, 1))
        loss = loss - torch.log1p(-mass.clamp(max=1 - 1e-6)).mean()
    return loss


def task_inputs(task: str, count: int, *, seed: int) -> list[Input]:
    """Return one input a step of so many sequences; ``gold`` is the position that decides."""
    generator = torch.Generator().manual_seed(1_000_003 + seed)
    found: list[Input] = []
    while len(found) < count * _SHORTEST:
        source, target = _draw(task, generator, batch=1)
        texts = [[_VOCAB.name(i) for i in side[0].tolist()] for side in (source, target)]
        links = [(s, t) for t, s in enumerate(decisive(task, len(texts[1])))]
        found += steps_of(texts[0], texts[1], links)
    return found


def decisive(task: str, length: int) -> list[int]:
    """Return the source position that decides each target position."""
    if task == "copy":
        return list(range(length))
    if task == "reverse":
        return list(range(length))[::-1]
    # Neighbours change places; an odd one at the end stays.
    return [min(i ^ 1, length - 1) if i ^ 1 < length else i for i in range(length)]


def _checks(model: Seq2Seq, task: str, kind: str, seed: int) -> list[Check]:
    case = StepCase(model, _VOCAB, _VOCAB, name=f"{task}, {kind}")
    inputs = task_inputs(task, 150, seed=seed)
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


def _draw(task: str, generator: torch.Generator, batch: int = _BATCH) -> tuple[Tensor, Tensor]:
    length = int(torch.randint(_SHORTEST, _LONGEST + 1, (), generator=generator))
    source = torch.randint(FIRST, len(_VOCAB), (batch, length), generator=generator)
    return source, source[:, decisive(task, length)]
