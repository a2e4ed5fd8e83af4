import json
import os

import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.checkpoint import FILES
from regard.seq2seq.ensemble import load_any
from regard.seq2seq.ensemble_job import train_ensemble
from regard.seq2seq.job import JobSettings, train_pairs
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.settings import TrainConfig
from regard.seq2seq.transducer import Transducer

PAIRS = Pairs(tuple((f"a{i:03b}", " ".join(f"{i:b}")) for i in range(8)), "toy", "f00d")
HELD_OUT = Pairs((("a111", "1 1 1"), ("a0", "0")))


def _settings(seed: int = 3, **changes) -> JobSettings:
    return JobSettings(
        target_symbols="spaces",
        model={"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13, "dropout": 0.2},
        batch_tokens=61,
        train=TrainConfig(warm_up=2, seed=seed, **{"steps": 11, "evaluate_every": 4} | changes),
    )


@pytest.mark.slow
def test_members_are_models_of_their_own_seeds_and_a_killed_one_is_made_up_for(tmp_path):
    where, events = tmp_path / "e", []
    results = train_ensemble(
        PAIRS,
        HELD_OUT,
        _settings(),
        directory=where,
        members=2,
        jobs=2,
        on_progress=lambda member, event: events.append((member, event.step)),
    )
    assert [result.steps for result in results] == [11, 11]
    assert {(0, 11), (1, 11)} <= set(events)
    assert sorted(os.listdir(where)) == ["0", "1", "ensemble.json"]
    model, _ = load_any(where)
    for member in (0, 1):
        alone, _ = train_pairs(PAIRS, HELD_OUT, _settings(3 + member))
        wanted = alone.model.state_dict()
        found = model.members[member].state_dict()
        assert all(torch.equal(found[name], wanted[name]) for name in wanted)
    before = [(where / "1" / name).read_bytes() for name in FILES if name != "log.csv"]
    for name in ("training.safetensors", "model.safetensors"):
        (where / "1" / name).unlink()
    train_ensemble(PAIRS, HELD_OUT, _settings(), directory=where, members=2, resume=True)
    assert before == [(where / "1" / name).read_bytes() for name in FILES if name != "log.csv"]
    assert Transducer.load(where).error_rates(HELD_OUT).examples == 2


def test_an_ensemble_of_another_number_is_not_resumed(tmp_path):
    (tmp_path / "ensemble.json").write_text(json.dumps({"format": 1, "members": ["0", "1"]}))
    with pytest.raises(InputError, match=r"another number of members(.|\n)*2(.|\n)*3"):
        train_ensemble(PAIRS, HELD_OUT, _settings(), directory=tmp_path, members=3, resume=True)


def test_a_directory_with_something_else_in_it_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for force in (False, True):
        with pytest.raises(InputError, match="not empty"):
            train_ensemble(
                PAIRS, HELD_OUT, _settings(), directory=tmp_path, members=2, force=force
            )
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize(
    ("clock", "members", "jobs", "each"),
    [("wall", 3, 3, 60.0), ("wall", 3, 2, 30.0), ("wall", 5, 2, 20.0), ("cpu", 3, 3, 20.0)],
)
def test_a_time_budget_is_that_of_all_members_together(clock, members, jobs, each):
    from regard.seq2seq.ensemble_job import _shared

    settings = _settings(time_budget=60.0, clock=clock, evaluate_every=0)
    assert _shared(settings, members, jobs).train.time_budget == each
