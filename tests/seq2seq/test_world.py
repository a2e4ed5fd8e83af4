"""Several processes that train one model: the same steps as one process takes alone."""

import dataclasses
import os
import signal
import socket

import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.batch import PairBatches
from regard.seq2seq.events import InterruptedRun
from regard.seq2seq.job import JobSettings, train_pairs
from regard.seq2seq.model import ModelConfig
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.settings import TrainConfig
from regard.seq2seq.train import Trainer, new_model
from regard.seq2seq.transducer import Transducer
from regard.seq2seq.world import ALONE, World, joined

SIZES = ModelConfig(17, 19, d_in=5, d_hidden=7, d_s=11, d_attn=13, dropout=0.3)
CONFIG = TrainConfig(steps=100, learning_rate=1e-2, warm_up=3, seed=5, accumulate=2)
PAIRS = Pairs(tuple((f"a{i:03b}", " ".join(f"{i:b}")) for i in range(8)), "toy", "f00d")
HELD_OUT = Pairs((("a111", "1 1 1"), ("a0", "0")))
SETTINGS = JobSettings(
    target_symbols="spaces",
    model={"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13, "dropout": 0.2},
    batch_tokens=23,
    train=TrainConfig(steps=23, warm_up=2, evaluate_every=7, seed=3, accumulate=2, average=2),
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    # Another test may have brought JAX into the process; the children do not use it.
    pytest.mark.filterwarnings("ignore:.*fork.*:RuntimeWarning"),
]


def _batches() -> PairBatches:
    generator = torch.Generator().manual_seed(7)
    draws = [torch.randint(4, 17, (2, 11), generator=generator) for _ in range(23)]
    # Targets of very different lengths: a mean of means would be another loss.
    examples = [
        (d[0, : 2 + i % 5].tolist(), d[1, : 1 + i % 11].tolist()) for i, d in enumerate(draws)
    ]
    return PairBatches(examples, batch_tokens=53)


def _course(world: World, config: TrainConfig = CONFIG) -> list[torch.Tensor]:
    """Return loss and all weights after every step."""
    found = []
    model = new_model(SIZES, seed=5)

    def show(event):
        weights = torch.cat([weight.detach().reshape(-1) for weight in model.parameters()])
        found.append(torch.cat([torch.tensor([event.loss]), weights]))

    # Every process shows its steps here.
    trainer = Trainer(model, _batches(), config, world=world)
    trainer._on_progress = show
    trainer.run()
    return found


def _together(size: int, act) -> list[int]:
    """Let processes act, each with its :class:`World`; return how they ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(size):
        child = os.fork()
        if child:
            children.append(child)
            continue
        try:
            os.environ |= {
                "RANK": str(rank),
                "WORLD_SIZE": str(size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
            }
            act(joined())
            os._exit(0)
        except InterruptedRun:
            os._exit(130)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(70)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def test_two_processes_take_the_hundred_steps_that_one_takes_alone(tmp_path):
    alone = torch.stack(_course(ALONE))

    def act(world):
        torch.save(torch.stack(_course(world)), tmp_path / f"{world.rank}.pt")

    assert _together(2, act) == [0, 0]
    one, two = (torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1))
    assert alone.shape == one.shape == (100, alone.shape[1])
    assert (alone - one).abs().max() <= 1e-5
    assert torch.equal(one, two)
    assert alone[-1, 0] < alone[0, 0]


def test_a_step_of_several_batches_has_the_gradient_of_all_their_symbols():
    config = dataclasses.replace(CONFIG, steps=1, warm_up=0, clip=float("inf"))
    sizes = dataclasses.replace(SIZES, dropout=0.0)
    model = new_model(sizes, seed=5)
    Trainer(model, _batches(), config).run()
    found = [weight.grad for weight in model.parameters()]

    model = new_model(sizes, seed=5)
    total = torch.zeros(())
    symbols = 0
    for batch in (_batches().at(0), _batches().at(1)):
        scores = model(batch.source, batch.inputs, batch.source_lengths).symbol_scores
        right = scores.log_softmax(-1).gather(-1, batch.targets[..., None])[..., 0]
        total = total - right[batch.targets != 0].sum()
        symbols += int((batch.targets != 0).sum())
    (total / symbols).backward()
    for gradient, weight in zip(found, model.parameters(), strict=True):
        torch.testing.assert_close(gradient, weight.grad, rtol=1e-4, atol=1e-6)


def test_two_processes_stop_together_and_go_on_to_the_model_of_one(tmp_path):
    alone, _ = train_pairs(PAIRS, HELD_OUT, SETTINGS)

    def act(world, resume=False):
        def interrupt(event):
            if event.step == 9:
                os.kill(os.getpid(), signal.SIGTERM)

        train_pairs(
            PAIRS,
            HELD_OUT,
            SETTINGS,
            directory=tmp_path / "m",
            resume=resume,
            world=world,
            on_progress=None if resume else interrupt,
        )

    assert _together(2, act) == [130, 130]
    assert _together(2, lambda world: act(world, resume=True)) == [0, 0]
    found = Transducer.load(tmp_path / "m").model.state_dict()
    for name, wanted in alone.model.state_dict().items():
        torch.testing.assert_close(found[name], wanted, rtol=0, atol=1e-5)


def test_more_processes_than_batches_in_a_step_are_refused():
    with pytest.raises(InputError, match=r"accumulate = 3 or more(.|\n)*accumulate = 2"):
        Trainer(new_model(SIZES, seed=5), _batches(), CONFIG, world=World(0, 3))


def test_batches_are_shared_out_without_rest():
    shares = [list(World(rank, 3).share(8)) for rank in range(3)]
    assert sorted(number for share in shares for number in share) == list(range(8))


def test_without_torchrun_a_process_is_alone(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    assert joined() is ALONE
