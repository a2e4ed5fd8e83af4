"""Training throughput: regard beside a tutorial's loop and yoyodyne, same data, same sizes.

A training step is forward, loss, backward and Adam's update (PyTorch's fused one for all), one
thread, CPU time. All train a bidirectional GRU encoder and a GRU decoder with additive
attention that is asked with the state before the step, on the CMUdict pairs that ship with
regard.

``same batches``
    Random pairs, padded: every system gets the same ones.
``own batches``
    regard's are grouped by length, about as many pairs in each; the others' are the random
    ones, as they make them themselves.

The number is source and target symbols a second, padding not counted, the median over rounds in
which the systems take turns.

The tutorial's loop is written here after the usual ones: it projects all keys at every step and
applies the output layer at every step. yoyodyne is measured if it is installed; its model and
its loss are called as its own training step calls them, without Lightning's trainer around
them, which would only add time. Its package imports wandb, a logger that the step does not use;
where wandb is missing an empty module stands in for it. Sizes are equal; parameters differ a
little, because yoyodyne shares one embedding and its output layer reads the state alone.

    python benchmarks/training_speed.py [--rounds 7] [--steps 12] [--json FILE]
"""

import argparse
import json
import random
import statistics
import sys
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import regard
from regard.seq2seq.batch import Batch, PairBatches, collate
from regard.seq2seq.bench.machine import machine
from regard.seq2seq.model import ModelConfig, Seq2Seq
from regard.seq2seq.recipes import g2p
from regard.seq2seq.vocab import FIRST, PAD, Vocab

EMBEDDING, DROPOUT, PAIRS = 64, 0.1, 64
SIZES = (96, 128, 256)  # encoder, one direction; the decoder's state is twice that
Ids = tuple[list[int], list[int]]
Step = Callable[[Any], Tensor]


class Tutorial(nn.Module):
    """The encoder-decoder of a tutorial, batched, with dropout where regard has it."""

    def __init__(self, source: int, target: int, hidden: int) -> None:
        super().__init__()
        state = 2 * hidden
        self.embed_source = nn.Embedding(source, EMBEDDING)
        self.embed_target = nn.Embedding(target, EMBEDDING)
        self.encoder = nn.GRU(EMBEDDING, hidden, batch_first=True, bidirectional=True)
        self.first = nn.Linear(2 * hidden, state)
        self.of_state, self.of_key = nn.Linear(state, state), nn.Linear(2 * hidden, state)
        self.score = nn.Linear(state, 1)
        self.decoder = nn.GRU(EMBEDDING + 2 * hidden, state, batch_first=True)
        self.out = nn.Linear(state + 2 * hidden + EMBEDDING, target)
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, batch: Batch) -> Tensor:
        """Return the symbols' scores, one step after the other."""
        keys, last = self.encoder(self.dropout(self.embed_source(batch.source)))
        padding = batch.source == PAD
        state = torch.tanh(self.first(torch.cat([last[0], last[1]], -1))).unsqueeze(0)
        steps = []
        for t in range(batch.inputs.shape[1]):
            given = self.dropout(self.embed_target(batch.inputs[:, t : t + 1]))
            query = state.transpose(0, 1)
            scores = self.score(torch.tanh(self.of_state(query) + self.of_key(keys)))
            scores = scores.squeeze(2).masked_fill(padding, float("-inf"))
            context = torch.bmm(torch.softmax(scores, -1).unsqueeze(1), keys)
            output, state = self.decoder(torch.cat([given, context], -1), state)
            steps.append(self.out(torch.cat([self.dropout(output), context, given], -1)))
        return torch.cat(steps, 1)


def loss_of(scores: Tensor, batch: Batch) -> Tensor:
    return functional.cross_entropy(
        scores.flatten(0, 1), batch.targets.flatten(), ignore_index=PAD
    )


def regards(source: int, target: int, hidden: int) -> tuple[nn.Module, Step]:
    model = Seq2Seq(
        ModelConfig(
            source,
            target,
            attention="bahdanau",
            d_in=EMBEDDING,
            d_hidden=hidden,
            d_s=2 * hidden,
            d_attn=2 * hidden,
            dropout=DROPOUT,
        )
    )

    def step(batch: Batch) -> Tensor:
        scored = model(batch.source, batch.inputs, batch.source_lengths)
        return loss_of(scored.symbol_scores, batch)

    return model, step


def tutorials(source: int, target: int, hidden: int) -> tuple[nn.Module, Step]:
    model = Tutorial(source, target, hidden)
    return model, lambda batch: loss_of(model(batch), batch)


def yoyodynes(source: int, target: int, hidden: int) -> tuple[nn.Module, Step] | None:
    try:
        import wandb  # noqa: F401, PLC0415
    except ImportError:
        sys.modules["wandb"] = types.ModuleType("wandb")
    try:
        from yoyodyne import special  # noqa: PLC0415
        from yoyodyne.models import rnn  # noqa: PLC0415
        from yoyodyne.models.modules import GRUEncoder  # noqa: PLC0415
    except ImportError as error:
        print(f"yoyodyne is not measured: {error}", file=sys.stderr)
        return None
    encoder = GRUEncoder(
        dropout=DROPOUT, embedding_size=EMBEDDING, hidden_size=hidden, bidirectional=True
    )
    model = rnn.SoftAttentionGRUModel(
        source_encoder=encoder,
        decoder_hidden_size=2 * hidden,
        decoder_dropout=DROPOUT,
        embedding_size=EMBEDDING,
        # Its own marks take the place of regard's; targets come first.
        vocab_size=len(special.SPECIAL) + source + target - 2 * FIRST,
        target_vocab_size=len(special.SPECIAL) + target - FIRST,
        compute_accuracy=False,
    )

    def step(batch: Any) -> Tensor:
        predictions, wanted = model._align(model(batch), batch.target.tensor)
        loss: Tensor = model.loss_func(predictions, wanted)
        return loss

    return model, step


def for_yoyodyne(examples: Sequence[Ids], target: int) -> Any:
    """Return a batch as its own data module makes them: one vocabulary, start and end marks."""
    from yoyodyne import special  # noqa: PLC0415
    from yoyodyne.data import batches  # noqa: PLC0415

    begin, end = special.START_IDX, special.END_IDX
    first = len(special.SPECIAL) - FIRST
    after = first + target - FIRST
    sources = [torch.tensor([begin, *(i + after for i in s), end]) for s, _ in examples]
    targets = [torch.tensor([*(i + first for i in t), end]) for _, t in examples]
    return batches.Batch(
        source=batches.PaddedTensor(sources), target=batches.PaddedTensor(targets)
    )


def symbols(batch: Batch) -> int:
    return int((batch.source != PAD).sum() + (batch.targets != PAD).sum())


def measure(hidden: int, rounds: int, steps: int) -> dict[str, Any]:
    """Time all systems on one size."""
    lexicon = g2p.load().train
    source = Vocab.of((s for s, _ in lexicon.items), kind="chars")
    target = Vocab.of((t for _, t in lexicon.items), kind="spaces")
    examples = [(source.encode(s), target.encode(t)) for s, t in lexicon.items]
    drawn = random.Random(0)
    groups = [drawn.sample(examples, PAIRS) for _ in range(steps)]
    same = [collate(group) for group in groups]
    tokens = sum(b.source.numel() + b.inputs.numel() for b in same) // steps
    grouped = PairBatches(examples, batch_tokens=tokens)
    own = [grouped.at(step) for step in range(steps)]
    count = sum(map(symbols, same))

    torch.manual_seed(0)
    sizes = (len(source), len(target), hidden)
    systems: dict[str, tuple[nn.Module, Step, Sequence[Any], int]] = {
        "regard, own batches": (*regards(*sizes), own, sum(map(symbols, own))),
        "regard, same batches": (*regards(*sizes), same, count),
        "tutorial's loop": (*tutorials(*sizes), same, count),
    }
    theirs = yoyodynes(*sizes)
    if theirs is not None:
        converted = [for_yoyodyne(group, len(target)) for group in groups]
        systems["yoyodyne"] = (*theirs, converted, count)

    optimizers = {
        name: torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
        for name, (model, *_) in systems.items()
    }
    rates: dict[str, list[float]] = {name: [] for name in systems}
    for turn in range(rounds + 1):
        for name, (model, step, batches, number) in systems.items():
            model.train()
            began = time.process_time()
            for batch in batches:
                optimizers[name].zero_grad(set_to_none=True)
                step(batch).backward()
                optimizers[name].step()
            spent = time.process_time() - began
            if turn:  # the first turn warms up
                rates[name].append(number / spent)
    medians = {name: statistics.median(each) for name, each in rates.items()}
    return {
        "hidden": hidden,
        "state": 2 * hidden,
        "pairs": PAIRS,
        "own_pairs": statistics.mean(len(batch.source) for batch in own),
        "parameters": {
            name: sum(p.numel() for p in model.parameters())
            for name, (model, *_) in systems.items()
        },
        "symbols_per_second": {name: round(rate) for name, rate in medians.items()},
        "spread": {name: [round(min(r)), round(max(r))] for name, r in rates.items()},
    }


def main() -> None:
    """Measure all sizes and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = [measure(size, given.rounds, given.steps) for size in given.sizes]
    for row in found:
        print(f"encoder 2 x {row['hidden']}, decoder {row['state']}, {row['pairs']} pairs")
        rates = row["symbols_per_second"]
        for name, rate in rates.items():
            ratio = rates["regard, own batches"] / rate
            low, high = row["spread"][name]
            print(
                f"  {name:22} {rate:>8,} symbols/s ({low:,} to {high:,})   regard {ratio:4.1f}x"
                f"   {row['parameters'][name]:,} parameters"
            )
    if given.json:
        made = {"command": "python benchmarks/training_speed.py", "regard": regard.__version__}
        text = json.dumps({"made_by": made | {"machine": machine()}, "sizes": found}, indent=1)
        given.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
