import json

import pytest

from regard.alignment.link_files import read_links
from regard.cli.main import run

GOLD = "0-0 1-1 2p2\n0-1\n\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "gold").write_text(GOLD)
    (tmp_path / "system").write_text("0-0 2-2\n0-1 3-3\n\n")
    return tmp_path


def test_a_score_is_printed_with_its_interval(files, capsys):
    assert run(["align", "score", str(files / "gold"), str(files / "system")]) == 0
    captured = capsys.readouterr()
    heading, row = captured.out.splitlines()
    assert heading.split() == [
        "precision",
        "recall",
        "F1",
        "AER",
        "95",
        "%",
        "interval",
        "links",
    ]
    # Of 4 links 3 are possible, 2 of 3 sure ones are found, AER = 1 - 5 / 7.
    assert row.split()[1:5] == ["75.0", "66.7", "70.6", "28.6"]
    assert f"{files / 'gold'}: counts from 0: 2 links have a position 0" in captured.err


def test_json_has_every_measure_and_every_sentence(files, capsys):
    arguments = ["--format", "json", "--per-sentence"]
    assert run(["align", "score", str(files / "gold"), str(files / "system"), *arguments]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["aer"] == pytest.approx(2 / 7)
    assert found["aer_interval"][0] <= found["aer"] <= found["aer_interval"][1]
    assert [row["recall"] for row in found["per_sentence"]] == [0.5, 1.0, 1.0]


def test_a_file_of_the_other_direction_is_named_and_exits_1(tmp_path, capsys):
    (tmp_path / "gold").write_text("0-3 1-2 2-4 4-1\n" * 5)
    (tmp_path / "system").write_text("3-0 2-1 4-2 1-4\n" * 5)
    arguments = ["align", "score", str(tmp_path / "gold"), str(tmp_path / "system")]
    assert run(arguments) == 1
    assert "warning: " in (said := capsys.readouterr().err)
    assert "the target's position first: read so, AER is 0.0 %, not 100.0 %" in said
    assert run([*arguments, "--target-first"]) == 0


def test_two_directions_are_combined(files, capsys):
    out = files / "both"
    arguments = ["align", "symmetrize", str(files / "gold"), str(files / "system")]
    assert run([*arguments, "--method", "intersection", "--out", str(out)]) == 0
    assert out.read_text() == "0-0 2-2\n0-1\n\n"
    assert run([*arguments, "--out", str(out)]) == 2
    assert "the file exists" in capsys.readouterr().err
    assert out.read_text() == "0-0 2-2\n0-1\n\n"


def test_a_conversion_keeps_every_link(files):
    out = files / "gold.naacl"
    assert (
        run(["align", "convert", str(files / "gold"), "--to", "naacl", "--out", str(out)]) == 0
    )
    assert out.read_text() == "1 1 1 S\n1 2 2 S\n1 3 3 P\n2 1 2 S\n"
    assert read_links(out).sentences == read_links(files / "gold").sentences[:2]


def test_what_a_format_cannot_hold_is_said(files, capsys):
    out = files / "gold.naacl"
    arguments = ["align", "convert", str(files / "gold"), "--to", "naacl", "--out", str(out)]
    assert run(arguments) == 0
    assert "read it with --sentences 3" in capsys.readouterr().err
    out.write_text("1 1 1 S 0.5\n2 1 2 P 0.25\n")
    back = ["align", "convert", str(out), "--sentences", "3", "--out", str(files / "back")]
    assert run([*back, "--to", "pharaoh"]) == 0
    assert (files / "back").read_text() == "0-0\n0p1\n\n"
    assert "the confidences of 2 links are left out" in capsys.readouterr().err
    assert run([*back, "--to", "naacl", "--force"]) == 0
    assert (files / "back").read_text() == out.read_text()


@pytest.mark.parametrize("turned", [False, True])
def test_a_naacl_file_without_links_at_its_end_goes_with_one_that_has_them(
    files, capsys, turned
):
    (files / "short").write_text("1 1 1\n1 2 2\n")
    names = ["system", "short"] if turned else ["short", "system"]
    paths = [str(files / name) for name in names]
    out = files / "both"
    assert run(["align", "symmetrize", *paths, "--method", "union", "--out", str(out)]) == 0
    assert out.read_text() == "0-0 1-1 2-2\n0-1 3-3\n\n"
    assert f"{files / 'short'}: no links from sentence 2 to 3" in capsys.readouterr().err
    assert run(["align", "score", *paths, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["sentences"] == 3
    (files / "system").write_text("0-0\n")
    assert run(["align", "score", *paths, "--sentences", "2"]) == 2
    assert "another number of sentences" in capsys.readouterr().err


def test_links_are_held_to_the_text(files, capsys):
    (files / "text").write_text("a b c\tx y z\na\tx y\na b\tx\n")
    arguments = ["align", "score", str(files / "gold"), str(files / "system")]
    assert run([*arguments, "--text", str(files / "text")]) == 2
    said = capsys.readouterr().err
    assert f"{files / 'system'}, line 2: a link is outside its sentence" in said


@pytest.mark.parametrize("content", ["0-0\n", "0-0\n0-0\n0-0\n0-0\n"])
def test_another_number_of_sentences_is_refused(files, capsys, content):
    (files / "system").write_text(content)
    assert run(["align", "score", str(files / "gold"), str(files / "system")]) == 2
    assert "another number of sentences" in capsys.readouterr().err


def test_an_output_that_is_an_input_is_refused(files, capsys):
    gold = str(files / "gold")
    assert run(["align", "convert", gold, "--to", "pharaoh", "--out", gold, "--force"]) == 2
    assert "the output is the input" in capsys.readouterr().err
    assert (files / "gold").read_text() == GOLD


def test_a_naacl_file_is_not_counted_from_0(files, capsys):
    out = str(files / "out")
    arguments = ["align", "convert", str(files / "gold"), "--to", "naacl", "--out", out]
    assert run([*arguments, "--out-base", "0"]) == 2
    assert "the NAACL format counts from 1" in capsys.readouterr().err


def test_a_system_without_any_link_misses_everything(files, capsys):
    (files / "system").write_text("\n\n\n")
    assert run(["align", "score", str(files / "gold"), str(files / "system")]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[4] == "100.0"
