import pytest

from regard.cli.main import run


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "nothing.tsv", "--out", "m"], "error: nothing.tsv: there is no such file"),
        (
            ["train", "g2p", "--out", "m", "--hidden", "7"],
            "error: the recipe `g2p` sets --hidden",
        ),
    ],
)
@pytest.mark.parametrize("local_rank", ["0", "1"])
def test_a_refusal_is_said_by_the_first_process_of_a_machine_and_told_to_torchrun(
    tmp_path, capsys, monkeypatch, local_rank, arguments, said
):
    from torch.distributed.elastic.multiprocessing.errors import ProcessFailure

    report = tmp_path / "error.json"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCAL_RANK", local_rank)
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(report))
    assert run(arguments) == 2
    shown = capsys.readouterr().err
    assert (said.removeprefix("error: ") in shown) is (local_rank == "0")
    # What torchrun's own report makes of it.
    failure = ProcessFailure(local_rank=1, pid=7, exitcode=2, error_file=str(report))
    assert failure.message.startswith(said)
    assert failure.timestamp > 0
