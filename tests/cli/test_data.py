import json

import pytest

from regard.cli.main import run


@pytest.fixture
def write(tmp_path):
    def write(text: str, name: str = "train.tsv") -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


GOOD = "".join(f"{i:05b}ab\t{i:05b} A\n" for i in range(23))


def test_good_data_answer_0(write, capsys):
    assert run(["data", "check", write(GOOD)]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == "nothing found"
    assert "pairs 23, sources 23, refused lines 0" in out
    assert err == ""


def test_findings_answer_1_and_name_line_and_remedy(write, capsys):
    train = write(GOOD + "no tab\n")
    test = write("00011ab\t00011 A\n", "test.tsv")
    assert run(["data", "check", train, "--test", test]) == 1
    out = capsys.readouterr().out
    for part in ("error    columns", "line 24: ", "leaked-pair", f"{train}, line 4", "help"):
        assert part in out
    assert out.splitlines()[-1] == "1 error, 2 warnings"


def test_notes_alone_answer_0(write, capsys):
    assert run(["data", "check", write(GOOD + "00011ab\t00011A\n")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 note"


def test_json_has_the_same_findings(write, capsys):
    assert run(["data", "check", write(GOOD + "x\n"), "--format", "json"]) == 1
    form = json.loads(capsys.readouterr().out)
    assert [(f["code"], f["count"]) for f in form["findings"]] == [("columns", 1)]


def test_columns_can_be_chosen(write, capsys):
    text = "word,note,ipa\n" + GOOD.replace("\t", ",x,")
    path = write(text, "d.csv")
    assert run(["data", "check", path]) == 1
    chosen = ["--source-column", "word", "--target-column", "ipa"]
    assert run(["data", "check", path, *chosen, "--symbols", "spaces", "--limit", "0"]) == 0
    counted = ["--target-column", "3", "--features-column", "2", "--header"]
    assert run(["data", "check", path, *counted]) == 0


def test_of_subwords_the_characters_are_looked_at(write, capsys):
    assert run(["data", "check", write(GOOD), "--symbols", "subwords"]) == 0
    assert "symbols: source 4, target 4" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-file"], "no such file"),
        (["{}", "--dev", "no-such-file"], "no such file"),
        (["{}", "--source-column", "0"], "a number from 1"),
        (["{}", "--source-column", "word", "--no-header"], "no names"),
        (["{}", "--limit", "-1"], "--limit"),
    ],
)
def test_what_cannot_be_done_answers_2_with_one_error(write, capsys, arguments, said):
    path = write(GOOD)
    assert run(["data", "check", *(a.format(path) for a in arguments)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "Traceback" not in err


def test_the_group_lists_its_verb(capsys):
    assert run(["data", "--help"]) == 0
    assert "check" in capsys.readouterr().out


def test_a_name_of_a_file_cannot_command_the_terminal(write, capsys):
    assert run(["data", "check", write("x\n" + GOOD, "a\x1b[2J.tsv")]) == 1
    assert "\x1b" not in capsys.readouterr().out
