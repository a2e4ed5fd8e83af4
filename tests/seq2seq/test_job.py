import csv
import dataclasses
import json
import os
import signal

import pytest
import torch

from regard.errors import InputError
from regard.seq2seq.batch import PairBatches
from regard.seq2seq.checkpoint import FILES
from regard.seq2seq.events import InterruptedRun
from regard.seq2seq.job import JobSettings, describe, train_pairs
from regard.seq2seq.pairs import Pairs
from regard.seq2seq.settings import TrainConfig
from regard.seq2seq.train import train
from regard.seq2seq.transducer import Transducer

SETTINGS = JobSettings(
    source_symbols="chars",
    target_symbols="spaces",
    model={"d_in": 5, "d_hidden": 7, "d_s": 11, "d_attn": 13, "dropout": 0.2},
    batch_tokens=61,
    train=TrainConfig(steps=11, warm_up=2, evaluate_every=4, seed=3),
)
PAIRS = Pairs(tuple((f"a{i:03b}", " ".join(f"{i:b}")) for i in range(8)), "toy", "f00d")
HELD_OUT = Pairs((("a111", "1 1 1"), ("a0", "0")))


def _interrupt_at(step: int):
    def interrupt(progress):
        if progress.step == step:
            os.kill(os.getpid(), signal.SIGINT)

    return interrupt


def test_the_shape_of_the_model_comes_from_the_data():
    description = describe(PAIRS, SETTINGS)
    assert description.source.symbols == ("0", "1", "a")
    assert description.target.symbols == ("0", "1")
    assert (description.longest_source, description.longest_target) == (4, 3)
    assert description.model.d_s == 11


def test_a_job_leaves_a_model_that_says_what_made_it(tmp_path):
    transducer, result = train_pairs(
        PAIRS, HELD_OUT, SETTINGS, directory=tmp_path / "m", made_by={"command": "regard x"}
    )
    assert sorted(os.listdir(tmp_path / "m")) == sorted(FILES)
    made_by = json.loads((tmp_path / "m" / "config.json").read_text())["made_by"]
    assert made_by["command"] == "regard x"
    assert made_by["seed"] == 3
    assert made_by["train"] == {"name": "toy", "pairs": 8, "sha256": "f00d"}
    assert made_by["settings"] == SETTINGS.to_json()
    loaded = Transducer.load(tmp_path / "m")
    wanted = transducer.model.state_dict()
    assert all(torch.equal(loaded.model.state_dict()[name], wanted[name]) for name in wanted)
    assert result.best_error_rate == transducer.error_rates(HELD_OUT).symbol_error_rate


def test_a_job_trains_on_the_batches_of_its_seed():
    description = describe(PAIRS, SETTINGS)
    encoded = [
        (description.source.encode(source), description.target.encode(target))
        for source, target in PAIRS.items
    ]
    batches = PairBatches(encoded, batch_tokens=61, seed=3)
    rates = iter([0.5, 0.4, 0.3])
    wanted, _ = train(
        description.model, batches, SETTINGS.train, evaluate=lambda _: next(rates)
    )
    settings = dataclasses.replace(SETTINGS.train, evaluate_every=0)
    found, _ = train_pairs(PAIRS, HELD_OUT, dataclasses.replace(SETTINGS, train=settings))
    one, two = wanted.state_dict(), found.model.state_dict()
    assert all(torch.equal(one[name], two[name]) for name in one)


def test_a_job_that_was_interrupted_goes_on_to_the_same_bytes(tmp_path):
    train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=tmp_path / "whole")
    with pytest.raises(InterruptedRun):
        train_pairs(
            PAIRS, HELD_OUT, SETTINGS, directory=tmp_path / "two", on_progress=_interrupt_at(5)
        )
    assert json.loads((tmp_path / "two" / "training.json").read_text())["step"] == 5
    train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=tmp_path / "two", resume=True)
    for name in sorted({*FILES} - {"log.csv"}):  # a log tells the time
        one, two = ((tmp_path / run / name).read_bytes() for run in ("whole", "two"))
        assert one == two, name


class KilledError(BaseException):
    """Ends a run as a kill would: nothing of ours handles it."""


def _kill(_):
    raise KilledError


def test_a_job_that_was_killed_before_its_first_save_goes_on_from_the_start(tmp_path):
    train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=tmp_path / "whole")
    with pytest.raises(KilledError):
        train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=tmp_path / "two", on_progress=_kill)
    assert sorted(os.listdir(tmp_path / "two")) == ["config.json", "log.csv", "vocab.json"]
    other = dataclasses.replace(SETTINGS, batch_tokens=67)
    with pytest.raises(InputError, match="other settings"):
        train_pairs(PAIRS, HELD_OUT, other, directory=tmp_path / "two", resume=True)
    train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=tmp_path / "two", resume=True)
    for name in sorted({*FILES} - {"log.csv"}):  # a log tells the time
        one, two = ((tmp_path / run / name).read_bytes() for run in ("whole", "two"))
        assert one == two, name


def _fail(_):
    raise RuntimeError("no memory")


@pytest.mark.parametrize("there", [False, True])
def test_a_job_that_fails_before_its_first_save_leaves_nothing(tmp_path, there):
    where = tmp_path / "m"
    if there:
        where.mkdir()
    with pytest.raises(RuntimeError):
        train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=where, on_progress=_fail)
    assert where.exists() == there
    train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=where)


def test_a_setting_that_is_refused_makes_no_directory(tmp_path):
    for settings in (
        dataclasses.replace(SETTINGS, batch_tokens=0),
        dataclasses.replace(SETTINGS, model={"d_hidden": 10**6}),
        dataclasses.replace(SETTINGS, model={"d_hidden": 10**9}),
    ):
        with pytest.raises(InputError):
            train_pairs(PAIRS, HELD_OUT, settings, directory=tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_resuming_a_finished_job_changes_nothing(tmp_path):
    train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in FILES}
    events = []
    _, result = train_pairs(
        PAIRS, HELD_OUT, SETTINGS, directory=tmp_path, resume=True, on_progress=events.append
    )
    assert events == []
    assert result.steps == 11
    assert {name: (tmp_path / name).read_bytes() for name in FILES} == before


@pytest.mark.parametrize(
    ("pairs", "settings", "said"),
    [
        (
            PAIRS,
            dataclasses.replace(SETTINGS, batch_tokens=67),
            "settings(.|\n)*batch_tokens = 6",
        ),
        (
            PAIRS,
            dataclasses.replace(SETTINGS, train=dataclasses.replace(SETTINGS.train, seed=4)),
            "settings(.|\n)*train.seed = 3(.|\n)*train.seed = 4",
        ),
        (dataclasses.replace(PAIRS, sha256="beef"), SETTINGS, "data(.|\n)*f00d(.|\n)*beef"),
        (
            dataclasses.replace(PAIRS, items=(*PAIRS.items[:-1], ("ab", "1 1 1"))),
            SETTINGS,
            "vocabularies",
        ),
    ],
)
def test_resuming_with_something_else_is_refused(tmp_path, pairs, settings, said):
    train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=tmp_path)
    with pytest.raises(InputError, match=said):
        train_pairs(pairs, HELD_OUT, settings, directory=tmp_path, resume=True)


def test_resuming_where_there_is_nothing_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such directory"):
        train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=tmp_path / "m", resume=True)


def test_a_full_directory_is_refused_before_a_step_is_taken(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    events = []
    with pytest.raises(InputError, match="not empty"):
        train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=tmp_path, on_progress=events.append)
    assert events == []
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_force_starts_again_and_keeps_other_files(tmp_path):
    train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=tmp_path, force=True)
    assert sorted(os.listdir(tmp_path)) == sorted([*FILES, "notes.txt"])


def test_a_model_entry_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match="d_model"):
        describe(PAIRS, dataclasses.replace(SETTINGS, model={"d_model": 3}))


def test_the_best_weights_are_chosen_by_the_metric_and_the_log_has_every_rate(tmp_path):
    settings = dataclasses.replace(SETTINGS, metric="exact_match")
    _, result = train_pairs(PAIRS, HELD_OUT, settings, directory=tmp_path)
    assert [name for name, _ in result.history[0].scores] == ["exact_match", "symbol_error"]
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert [int(row["step"]) for row in rows] == [4, 8, 10, 11]
    for row, look in zip([rows[0], rows[1], rows[3]], result.history, strict=True):
        assert float(row["exact_match"]) == look.error_rate
        assert float(row["mean_loss"]) == look.loss


def test_features_stand_before_the_letters_of_a_source():
    pairs = Pairs((("Ei\tN;PL", "Eier"), ("Tag\tN;SG", "Tag")), features=True)
    description = describe(pairs, JobSettings())
    assert description.source.features
    assert description.source.split("Ei\tN;PL") == ["\tN", "\tPL", "E", "i"]
    assert not description.target.features


def test_a_run_that_was_killed_before_it_said_what_it_is_begins_anew(tmp_path):
    (tmp_path / "vocab.json").write_text(json.dumps({"source": {}, "target": {}}))
    (tmp_path / ".config.json.ab12cd34").write_text("{")
    train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=tmp_path, resume=True)
    assert sorted(os.listdir(tmp_path)) == sorted(FILES)


def test_resuming_in_a_directory_of_other_files_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"config\.json: there is no such file"):
        train_pairs(PAIRS, HELD_OUT, SETTINGS, directory=tmp_path, resume=True)
    assert os.listdir(tmp_path) == ["notes.txt"]
