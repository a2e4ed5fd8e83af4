"""Runs that are killed, for real: whatever the moment, they go on to the same result."""

import csv
import dataclasses
import os
import random
import shutil
import signal
import time

import pytest

from regard.seq2seq.checkpoint import FILES, load_description, load_model, load_training
from regard.seq2seq.job import JobSettings, train_pairs
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.settings import TrainConfig

PAIRS = Pairs(tuple((f"a{i:03b}", " ".join(f"{i:b}")) for i in range(8)), "toy", "f00d")
HELD_OUT = Pairs((("a111", "1 1 1"), ("a0", "0")))
SETTINGS = JobSettings(
    target_symbols="spaces",
    model={"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13, "dropout": 0.2},
    batch_tokens=61,
    train=TrainConfig(steps=5, warm_up=2, evaluate_every=2, average=2, ema=0.5, seed=3),
)

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning"),
    # Another test may have brought JAX into the process; the children do not use it.
    pytest.mark.filterwarnings("ignore:.*fork.*:RuntimeWarning"),
]


def _train(where, steps=5, *, resume=False, save_every=0.0, force=False):
    training = dataclasses.replace(SETTINGS.train, steps=steps)
    settings = dataclasses.replace(SETTINGS, train=training)
    train_pairs(
        PAIRS,
        HELD_OUT,
        settings,
        directory=where,
        resume=resume,
        force=force,
        save_every=save_every,
    )


def _in_child(act) -> int:
    """Start a child process and return its number."""
    child = os.fork()
    if child:
        return child
    try:
        act()
        os._exit(0)
    except BaseException:
        os._exit(70)


def _end_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _check_readable(where):
    """Whatever is there is whole."""
    inside = set(os.listdir(where))
    if {"config.json", "vocab.json"} <= inside:
        load_description(where)
    if "model.safetensors" in inside:
        load_model(where)
    if "training.safetensors" in inside:
        load_training(where)


def _content(where):
    """Everything that a run left, the seconds in its log aside."""
    assert sorted(os.listdir(where)) == sorted(FILES)
    found = {name: (where / name).read_bytes() for name in FILES if name != "log.csv"}
    rows = list(csv.reader((where / "log.csv").read_text().splitlines()))
    assert rows[0][-1] == "seconds"
    return found, [row[:-1] for row in rows]


def _kill_at(name, number):
    """Have this process die just before it calls a function of ``os`` for the n-th time."""
    call, left = getattr(os, name), number

    def counted(*arguments, **options):
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1
        return call(*arguments, **options)

    setattr(os, name, counted)


def test_a_run_that_is_killed_between_any_two_writes_goes_on_to_the_same_files(tmp_path):
    whole = tmp_path / "whole"
    _train(whole)
    wanted = _content(whole)
    number, ended = 0, signal.SIGKILL
    while ended:
        where = tmp_path / f"{number}"
        where.mkdir()

        def act(where=where, number=number):
            _kill_at("replace", number)
            _train(where)

        ended = -_end_of(_in_child(act))
        assert ended in (0, signal.SIGKILL)
        _check_readable(where)
        _train(where, resume=True)
        assert _content(where) == wanted, number
        number += 1
    assert number > 15  # as many renames, and each was killed once


def test_a_run_that_is_killed_while_it_clears_an_old_one_can_be_begun_again(tmp_path):
    whole = tmp_path / "whole"
    _train(whole)
    wanted = _content(whole)
    number, ended = 0, signal.SIGKILL
    while ended and number < 13:
        where = tmp_path / f"{number}"
        shutil.copytree(whole, where)

        def act(where=where, number=number):
            _kill_at("unlink", number)
            _train(where, force=True)

        ended = -_end_of(_in_child(act))
        assert ended in (0, signal.SIGKILL)
        _train(where, force=True)
        assert _content(where) == wanted, number
        number += 1
    assert number > 7  # more than the files that were there


def test_a_run_that_is_killed_at_random_moments_ends_as_if_it_never_had_been(tmp_path):
    steps = 97
    whole = tmp_path / "whole"
    began = time.monotonic()
    _train(whole, steps, save_every=0.02)
    length = time.monotonic() - began
    wanted = _content(whole)
    moments = random.Random(7)
    for number in range(3):
        where = tmp_path / f"{number}"
        where.mkdir()
        kills, ended = 0, -signal.SIGKILL
        while ended:
            child = _in_child(
                lambda where=where: _train(where, steps, resume=True, save_every=0.02)
            )
            time.sleep(moments.uniform(0.1, 0.7) * length)
            if kills < 5:
                os.kill(child, signal.SIGKILL)
                kills += 1
            ended = _end_of(child)
            assert ended in (0, -signal.SIGKILL)
            _check_readable(where)
        assert _content(where) == wanted
