import json
from dataclasses import replace

import pytest

from regard.errors import InputError
from regard.seq2seq.bench import run as bench
from regard.seq2seq.bench.plan import plan
from regard.seq2seq.bench.run import do_runs, result_of
from regard.seq2seq.events import InterruptedRun, TrainResult
from regard.seq2seq.job import train_pairs
from regard.seq2seq.recipes.recipe import Parts


@pytest.fixture
def data(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for part in Parts._fields:
        lines = [f"{part[0]}{'ab' * i}\tx {'y ' * i}z\n" for i in range(1, 6)]
        (data / f"fre_{part}.tsv").write_text("".join(lines), encoding="utf-8")
    return str(data)


@pytest.fixture
def started(monkeypatch):
    """Members are trained here, three steps each; what was asked for is noted."""
    calls = []

    def train_ensemble(pairs, held_out, settings, *, directory, members, jobs, resume):
        calls.append((settings.train, members, jobs, resume))
        results: list[TrainResult] = []
        for member in range(members):
            training = replace(
                settings.train,
                seed=settings.train.seed + member,
                time_budget=0.0,
                steps=3,
                warm_up=1,
            )
            one = replace(settings, train=training)
            results.append(
                train_pairs(pairs, held_out, one, directory=directory / str(member))[1]
            )
        return results

    monkeypatch.setattr(bench, "train_ensemble", train_ensemble)
    return calls


def test_a_bench_writes_a_result_for_each_run_and_does_none_twice(tmp_path, data, started):
    runs = plan(["g2p:fre"], seeds=2, data_dir=data)
    out = tmp_path / "out"
    do_runs(runs[:1], out, jobs=2, data_dir=data, seconds=7.0)
    told = []
    for _ in range(2):
        do_runs(
            runs,
            out,
            jobs=2,
            data_dir=data,
            seconds=7.0,
            on_start=lambda run, seconds: told.append((run.seed, seconds)),
        )
    assert told == [(1, 7.0)]
    result = result_of(out, runs[1])
    assert result["budget"] == {"seconds": 7.0, "clock": "wall", "members": 2, "cores": 2}
    assert [member["seed"] for member in result["members"]] == [100, 101]
    assert set(result["test"]["all"]) == {"WER", "PER", "examples"}
    assert result["interval"]["low"] <= result["test"]["all"]["WER"]
    assert not list((out / "work").iterdir())
    assert result["machine"]["cores"] >= 1


def test_a_result_says_nothing_of_where_the_data_lie(tmp_path, data, started):
    runs = plan(["g2p:fre"], seeds=1, data_dir=data)
    do_runs(runs, tmp_path / "out", jobs=1, data_dir=data, seconds=7.0)
    assert str(tmp_path) not in json.dumps(result_of(tmp_path / "out", runs[0]))


@pytest.mark.parametrize("changed", [{"seconds": 8.0}, {"clock": "cpu"}, {"jobs": 1}])
def test_results_of_different_budgets_do_not_mix(tmp_path, data, started, changed):
    runs = plan(["g2p:fre"], seeds=1, data_dir=data)
    given = {"seconds": 7.0, "clock": "wall", "jobs": 2, "data_dir": data}
    do_runs(runs, tmp_path / "out", **given)
    with pytest.raises(InputError, match="another budget"):
        do_runs(runs, tmp_path / "out", **(given | changed))


def test_the_cpu_time_of_all_members_is_asked_for(tmp_path, data, started):
    runs = plan(["g2p:fre"], seeds=1, data_dir=data)
    do_runs(runs, tmp_path / "two", jobs=2, data_dir=data, seconds=7.0, clock="cpu")
    do_runs(runs, tmp_path / "one", jobs=1, data_dir=data, seconds=7.0, clock="cpu")
    assert [call[0].time_budget for call in started] == [14.0, 7.0]
    assert {call[0].clock for call in started} == {"cpu"}


def test_a_bench_that_is_stopped_goes_on_with_the_same_members(tmp_path, data, monkeypatch):
    asked = []

    def stopped(*given, directory, resume, **more):
        asked.append(resume)
        directory.mkdir(exist_ok=True)
        raise InterruptedRun(3, 15)

    monkeypatch.setattr(bench, "train_ensemble", stopped)
    runs = plan(["g2p:fre"], seeds=1, data_dir=data)
    for _ in range(2):
        with pytest.raises(InterruptedRun):
            do_runs(runs, tmp_path / "out", jobs=2, data_dir=data)
    assert asked == [False, True]
    assert result_of(tmp_path / "out", runs[0]) is None
