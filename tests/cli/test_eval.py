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


def test_every_number_of_the_json_has_its_interval_and_its_table(model, data, capsys):
    options = ("--nbest", "3", "--by-length", "--errors", "5", "--bootstrap", "97")
    assert run(["eval", str(model), str(data), "--format", "json", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    for measure in ("symbol_error_rate", "exact_match_error", "token_accuracy"):
        low, high = report["intervals"][measure]
        assert low <= report[measure] <= high
    assert [row["among"] for row in report["oracle"]] == [1, 2, 3]
    rates = [row["exact_match_error"] for row in report["oracle"]]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] == report["exact_match_error"]
    assert [(row["shortest"], row["examples"]) for row in report["by_length"]] == [(3, 64)]
    edits = [row["edits"] for row in report["errors"]]
    assert edits == sorted(edits, reverse=True)
    assert len(edits) == 5


def test_the_text_has_the_same_tables(model, data, capsys):
    options = ("--beam", "3", "--nbest", "2", "--by-length", "--errors", "3")
    assert run(["eval", str(model), str(data), *options]) == 0
    out = capsys.readouterr().out
    assert out.count("95 % interval") == 3
    assert "the best among the first" in out
    assert "source symbols   sources" in out
    assert out.count("  ->  ") == 1 + 3
    assert run(["eval", str(model), str(data), "--bootstrap", "0"]) == 0
    assert "interval" not in capsys.readouterr().out


def test_bleu_and_chrf_come_with_their_signatures(model, data, capsys):
    pytest.importorskip("sacrebleu")
    options = ("--metric", "bleu", "--metric", "chrf", "--format", "json")
    assert run(["eval", str(model), str(data), *options]) == 0
    report = json.loads(capsys.readouterr().out)
    for name in ("bleu", "chrf"):
        assert 0 <= report[name]["score"] <= 100
        assert "version:" in report[name]["signature"]


def test_symbols_that_the_model_never_saw_are_named(model, tmp_path, capsys):
    path = tmp_path / "d.tsv"
    path.write_text("abx\tA B\n")
    assert run(["eval", str(model), str(path), "--unknown", "drop"]) == 0
    said = "1 of 1 sources have symbols that the model never saw: 'x' (left out)"
    assert capsys.readouterr().err == f"warning: {path}: {said}\n"


def test_a_model_is_scored_on_sources_of_the_kind_that_it_reads(tmp_path, model, data, capsys):
    forms = tmp_path / "forms.tsv"
    words = ("ab", "ba", "aa", "bb", "aba")
    forms.write_text("".join(f"{word}\t{word}s\tN;PL\n" for word in words))
    columns = ["--features-column", "3"]
    out = str(tmp_path / "m")
    sizes = ["--hidden", "7", "--state", "11", "--steps", "3"]
    assert run(["train", str(forms), "--out", out, *sizes, *columns]) == 0
    plain = tmp_path / "plain.tsv"
    plain.write_text("ab\tabs\n")
    capsys.readouterr()
    assert run(["eval", out, str(plain)]) == 2
    said = capsys.readouterr().err
    assert f"{plain}: the model reads sources with features" in said
    assert "--features-column" in said
    assert run(["eval", str(model), str(forms), *columns]) == 2
    assert "the model reads sources without features" in capsys.readouterr().err
    forms.write_text("ab\tabs\tN;XX\n")
    assert run(["eval", out, str(forms), *columns]) == 0
    assert "never saw: '[XX]' (kept as something unknown)" in capsys.readouterr().err


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


def test_bleu_of_answers_without_four_words_is_warned_of(model, data, tmp_path, capsys):
    pytest.importorskip("sacrebleu")
    assert run(["eval", str(model), str(data), "--metric", "bleu"]) == 0
    assert "no reference has 4 words" in capsys.readouterr().err
    longer = tmp_path / "longer.tsv"
    longer.write_text("abcd\tA B C D\n", encoding="utf-8")
    assert run(["eval", str(model), str(longer), "--metric", "bleu"]) == 0
    assert "no reference" not in capsys.readouterr().err
