import json

import pytest

from regard.errors import InputError
from regard.seq2seq.bench import run as bench
from regard.seq2seq.bench.plan import plan
from regard.seq2seq.bench.run import MemberError, do_runs, result_of
from regard.seq2seq.recipes.recipe import Parts


@pytest.fixture
def data(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for part in Parts._fields:
        lines = [f"{part[0]}{'ab' * i}\tx {'y ' * i}z\n" for i in range(1, 6)]
        (data / f"fre_{part}.tsv").write_text("".join(lines), encoding="utf-8")
    return str(data)


def test_a_bench_writes_a_result_for_each_run_and_does_none_twice(tmp_path, data, monkeypatch):
    runs = plan(["g2p:fre"], seeds=1, data_dir=data)
    out = tmp_path / "out"
    assert do_runs(runs, out, jobs=2, data_dir=data, seconds=0.3, clock="cpu")
    result = result_of(out, runs[0])
    assert result["budget"] == {"seconds": 0.3, "clock": "cpu", "members": 2, "cores": 2}
    assert [member["seed"] for member in result["members"]] == [0, 1000]
    assert set(result["test"]["all"]) == {"WER", "PER", "examples"}
    assert result["interval"]["low"] <= result["test"]["all"]["WER"]
    assert not list((out / "work").iterdir())
    assert json.dumps(result).count(str(tmp_path)) == 0

    monkeypatch.setattr(bench, "_start", None)  # nothing is started again
    told = []
    again = do_runs(
        runs,
        out,
        jobs=2,
        data_dir=data,
        seconds=0.3,
        clock="cpu",
        on_start=lambda run, seconds: told.append(run),
    )
    assert (again, told) == (True, [])
    with pytest.raises(InputError, match="another budget"):
        do_runs(runs, out, jobs=2, data_dir=data, seconds=0.7, clock="cpu")


class _Process:
    """A member that ends with a code."""

    def __init__(self, code: int, said: str = "") -> None:
        self.returncode, self._said = code, said
        self.terminated = False
        self.stderr = self

    def read(self) -> str:
        return self._said

    def close(self) -> None:
        pass

    def poll(self) -> int:
        return self.returncode

    def wait(self) -> int:
        return self.returncode

    def terminate(self) -> None:
        self.terminated = True


def test_a_member_that_fails_is_named_with_what_it_said(tmp_path, data, monkeypatch):
    monkeypatch.setattr(bench, "_start", lambda given: _Process(2, "noise\nerror: no room"))
    runs = plan(["g2p:fre"], seeds=1, data_dir=data)
    with pytest.raises(MemberError, match="error: no room"):
        do_runs(runs, tmp_path / "out", jobs=1, data_dir=data)


@pytest.mark.parametrize("code", [bench.STOPPED, -15, 1])
def test_a_bench_that_is_asked_to_stop_leaves_no_result(tmp_path, data, monkeypatch, code):
    monkeypatch.setattr(bench, "_start", lambda given: _Process(code))
    runs = plan(["g2p:fre"], seeds=1, data_dir=data)
    out = tmp_path / "out"
    stopped = do_runs(runs, out, jobs=2, data_dir=data, asked_to_stop=lambda: True)
    assert not stopped
    assert result_of(out, runs[0]) is None


def test_more_members_than_cores_share_the_time(tmp_path, data, monkeypatch):
    started = []

    def start(given):
        started.append(given)
        return _Process(bench.STOPPED)

    monkeypatch.setattr(bench, "_start", start)
    runs = plan(["g2p:fre"], seeds=1, data_dir=data)
    do_runs(runs, tmp_path / "out", jobs=1, data_dir=data, seconds=8.0)
    assert [given["seconds"] for given in started] == [4.0]  # and then it was stopped
