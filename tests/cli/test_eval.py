import json

import pytest

from regard.cli.main import run
from regard.seq2seq.pairs import read_pairs
from regard.seq2seq.transducer import Transducer


def test_text_and_json_give_the_rates_of_the_model(model, data, capsys):
    rates = Transducer.load(model).error_rates(read_pairs(data))
    assert run(["eval", str(model), str(data), "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["symbol_error_rate"] == rates.symbol_error_rate
    assert report["exact_match_error"] == rates.exact_match_error
    assert (report["examples"], report["wrong"]) == (64, rates.wrong)
    assert run(["eval", str(model), str(data)]) == 0
    captured = capsys.readouterr()
    assert f"{100 * rates.symbol_error_rate:.2f} %" in captured.out
    assert f"({rates.wrong} of 64 sources)" in captured.out
    assert captured.err == ""


def test_symbols_that_the_model_never_saw_are_named(model, tmp_path, capsys):
    path = tmp_path / "d.tsv"
    path.write_text("abx\tA B\n")
    assert run(["eval", str(model), str(path)]) == 0
    assert "'x'" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, b"", b"abc\n", b"\xff\tA\n"])
def test_bad_data_is_one_clean_message(model, tmp_path, capsys, content):
    path = tmp_path / "d.tsv"
    if content is not None:
        path.write_bytes(content)
    assert run(["eval", str(model), str(path)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"error: {path}")
    assert captured.out == ""


def test_what_is_no_model_is_refused(data, tmp_path, capsys):
    assert run(["eval", str(tmp_path), str(data)]) == 2
    assert "config.json: there is no such file" in capsys.readouterr().err
