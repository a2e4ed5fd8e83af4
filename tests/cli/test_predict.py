import io
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from regard.cli.main import run
from regard.seq2seq.search import SearchSettings
from regard.seq2seq.transducer import Transducer


def _run(*arguments) -> int:
    return run([str(argument) for argument in arguments])


@pytest.fixture
def typed(monkeypatch):
    """Put bytes on stdin."""

    def put(data: bytes):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))

    return put


def test_words_are_answered_in_their_order(model, capsys):
    assert _run("predict", model, "abc", "dd") == 0
    wanted = Transducer.load(model).predict(["abc", "dd"])
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{p.source}\t{p.target}" for p in wanted]


def test_stdin_a_dash_and_a_file_give_the_same(model, typed, tmp_path, capsys):
    data = b"abc\r\ndd\ncab"
    (tmp_path / "in.txt").write_bytes(data)
    found = []
    for arguments in ([], ["--input", "-"], ["--input", tmp_path / "in.txt"]):
        typed(data)
        assert _run("predict", model, *arguments) == 0
        found.append(capsys.readouterr().out)
    assert found[0].count("\n") == 3
    assert found[0] == found[1] == found[2]


def test_an_empty_line_is_answered_with_an_empty_line_and_a_warning(model, typed, capsys):
    typed(b"abc\n\ndd\n")
    assert _run("predict", model) == 0
    captured = capsys.readouterr()
    assert captured.out.split("\n")[1] == ""
    assert captured.out.count("\n") == 3
    assert "input 2 is empty" in captured.err


def test_unknown_symbols_are_reported_on_stderr(model, capsys):
    assert _run("predict", model, "axy", "a") == 0
    captured = capsys.readouterr()
    assert "input 1 has symbols that the model never saw: 'x' 'y'" in captured.err
    assert "'" not in captured.out
    assert captured.out.count("\n") == 2


def test_a_symbol_that_the_model_never_saw_is_reported_once_and_inputs_are_counted(
    model, typed, capsys
):
    typed(b"xyz\n" * 53 + b"axw\n")
    assert _run("predict", model) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 3
    assert "input 1 has symbols that the model never saw: 'x' 'y' 'z' (kept" in said[0]
    assert "input 54 has symbols that the model never saw: 'w' (kept" in said[1]
    assert "54 inputs have symbols that the model never saw, 4 different ones" in said[2]


def test_many_warnings_are_counted_and_not_all_shown(model, typed, capsys):
    typed(b"\n" * 53)
    assert _run("predict", model) == 0
    err = capsys.readouterr().err
    assert err.count("is empty") == 20
    assert "33 more like these" in err


def test_scores_and_links_are_further_columns(model, capsys):
    assert _run("predict", model, "abcd", "--scores", "--align") == 0
    prediction = Transducer.load(model).predict(["abcd"])[0]
    source, target, score, links = capsys.readouterr().out.rstrip("\n").split("\t")
    assert (source, target) == ("abcd", prediction.target)
    assert float(score) == pytest.approx(prediction.hypothesis.log_prob, abs=1e-4)
    looks = prediction.hypothesis.weights.argmax(-1)
    assert links == " ".join(f"{looks[i]}-{i}" for i in range(len(looks)))


def test_json_lines_hold_the_whole_matrix(model, capsys):
    assert _run("predict", model, "abcd", "--format", "json", "--align", "--scores") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["source_symbols"] == list("abcd")
    assert len(answer["weights"]) == len(answer["target_symbols"])
    for row in answer["weights"]:
        assert sum(row) == pytest.approx(1, abs=1e-4)
        assert len(row) == 4
    assert answer["log_prob"] < 0
    assert answer["unknown"] == []


def test_a_tab_or_line_end_in_a_word_does_not_tear_the_line_apart(model, capsys):
    word = "a\tb\nc\\t\r"
    assert _run("predict", model, word) == 0
    out = capsys.readouterr().out
    assert (out.count("\t"), out.count("\n")) == (1, 1)
    source = out.split("\t")[0]
    assert source.encode("ascii").decode("unicode_escape") == word


def test_a_file_is_written_once_and_only_force_writes_over_it(model, tmp_path, capsys):
    path = tmp_path / "out.tsv"
    assert _run("predict", model, "abc", "--output", path) == 0
    first = path.read_text()
    assert first.startswith("abc\t")
    assert _run("predict", model, "dd", "--output", path) == 2
    assert "the file exists" in capsys.readouterr().err
    assert path.read_text() == first
    assert _run("predict", model, "dd", "--output", path, "--force") == 0
    assert path.read_text().startswith("dd\t")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["abc", "--input", "-"], "not both"),
        (["--input", "nothing.txt"], "nothing.txt: there is no such file"),
        (["--input", "."], "this is a directory, not a file"),
        (["abc", "--output", "nowhere/out.tsv"], "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_one_clean_message(model, capsys, arguments, said):
    assert _run("predict", model, *arguments) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_lines_before_a_bad_one_are_answered(model, typed, capsys):
    typed(b"abc\nb\xff\ndd\n")
    assert _run("predict", model) == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("abc\t")
    assert captured.out.count("\n") == 1
    assert "stdin, line 2: the text is not UTF-8" in captured.err


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "model.safetensors"])
def test_a_damaged_model_is_refused_by_its_file(model, tmp_path, capsys, name):
    for path in model.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    assert _run("predict", tmp_path, "abc") == 2
    assert f"{tmp_path / name}: the file is damaged" in capsys.readouterr().err


def test_a_model_without_attention_has_no_links(data, tmp_path, capsys):
    out = tmp_path / "m"
    sizes = ("--hidden", "7", "--state", "11", "--steps", "2")
    assert _run("train", data, "--out", out, "--attention", "none", *sizes) == 0
    capsys.readouterr()
    assert _run("predict", out, "abc") == 0
    assert _run("predict", out, "abc", "--align") == 2
    assert "a model with attention" in capsys.readouterr().err


def test_an_output_that_is_the_input_is_refused_and_left_alone(model, tmp_path, capsys):
    path = tmp_path / "w.txt"
    path.write_text("abc\ndd\n")
    (tmp_path / "link").symlink_to(path)
    for output in (path, tmp_path / "link"):
        assert _run("predict", model, "-i", path, "--output", output, "--force") == 2
        assert "the output is the input" in capsys.readouterr().err
    assert path.read_text() == "abc\ndd\n"


@pytest.mark.parametrize("content", [None, b"abc\n\xff\n"])
def test_an_output_is_replaced_only_when_all_is_answered(model, tmp_path, content):
    path = tmp_path / "out.tsv"
    path.write_text("old")
    if content is not None:
        (tmp_path / "in.txt").write_bytes(content)
    before = sorted(os.listdir(tmp_path))
    source = ("-i", tmp_path / "in.txt")
    assert _run("predict", model, *source, "--output", path, "--force") == 2
    assert path.read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == before


def test_an_output_behind_a_link_is_replaced_and_the_link_stays(model, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "real").write_text("old")
    assert _run("predict", model, "abc", "-o", tmp_path / "link", "--force") == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text().startswith("abc\t")


def test_a_dash_as_output_is_stdout(model, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert _run("predict", model, "abc", "--output", "-") == 0
    assert capsys.readouterr().out.startswith("abc\t")
    assert os.listdir(tmp_path) == []


def test_a_text_that_is_too_long_gets_an_empty_answer_and_exit_code_1(model, typed, capsys):
    long = "a" * 2003
    typed(b"abc\n" + long.encode() + b"\ndd\n")
    assert _run("predict", model) == 1
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].startswith("abc\t")
    assert lines[1] == long + "\t"
    assert lines[2].startswith("dd\t")
    assert "input 2 is too long" in captured.err
    assert "2,003 symbols" in captured.err
    assert _run("predict", model, "abc", "abcd", "--longest", "3", "--format", "json") == 1
    one, two = map(json.loads, capsys.readouterr().out.splitlines())
    assert "refused" not in one
    assert two == {"source": "abcd", "target": "", "refused": "too long"}


def test_json_has_one_object_for_every_line_also_an_empty_one(model, typed, capsys):
    typed(b"abc\n\ndd\n")
    assert _run("predict", model, "--format", "json") == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [answer["source"] for answer in answers] == ["abc", "", "dd"]
    assert answers[1]["refused"] == "empty"


def test_the_n_best_are_ranked_lines_with_scores_and_links(model, capsys):
    assert _run("predict", model, "abcd", "dd", "--nbest", "3", "--scores", "--align") == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [(row[0], row[2]) for row in rows] == [(w, r) for w in ("abcd", "dd") for r in "123"]
    settings = SearchSettings(beam=3, nbest=3)
    for prediction, at in zip(
        Transducer.load(model).predict(["abcd", "dd"], search=settings), (0, 3), strict=True
    ):
        for answer, row in zip(prediction.answers, rows[at : at + 3], strict=True):
            assert row[1] == answer.target
            assert float(row[3]) == pytest.approx(answer.hypothesis.log_prob, abs=1e-4)
            assert len(row[4].split()) == len(answer.target_symbols)
    log_probs = [float(row[3]) for row in rows[:3]]
    assert log_probs == sorted(log_probs, reverse=True)


def test_json_holds_the_n_best_and_a_penalty_shows_in_the_score(model, capsys):
    penalty = ("--length-penalty", "average")
    assert _run("predict", model, "abcd", "--nbest", "3", "--format", "json", *penalty) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["answers"]) == 3
    assert answer["target"] == answer["answers"][0]["target"]
    for one in answer["answers"]:
        length = len(one["target"].split()) + one["finished"]
        assert one["score"] == pytest.approx(one["log_prob"] / length, abs=1e-5)
    assert _run("predict", model, "abcd", "--scores", *penalty) == 0
    assert capsys.readouterr().out.count("\t") == 3


def test_only_listed_answers_and_allowed_symbols_are_given(model, tmp_path, capsys):
    path = tmp_path / "lexicon.txt"
    path.write_text("A B\nC D D\nX Y\n")
    assert _run("predict", model, "abc", "dd", "--lexicon", path) == 0
    captured = capsys.readouterr()
    assert {line.split("\t")[1] for line in captured.out.splitlines()} <= {"A B", "C D D"}
    assert f"1 lines of {path} are left out" in captured.err
    (tmp_path / "allowed").write_text("D\n")
    for allow in ("D", f"@{tmp_path / 'allowed'}"):
        assert _run("predict", model, "abc", "--allow", allow, "--min-length", "3") == 0
        assert set(capsys.readouterr().out.rstrip("\n").split("\t")[1].split()) == {"D"}


def test_drawn_answers_come_again_with_the_seed(model, capsys):
    def drawn(*options):
        assert (
            _run("predict", model, "abcd", "--temperature", "2", "--nbest", "7", *options) == 0
        )
        return capsys.readouterr().out

    assert drawn() == drawn("--seed", "0") != drawn("--seed", "1")


def test_unknown_symbols_can_be_dropped_or_refused(model, capsys):
    assert _run("predict", model, "axbx", "ab", "--unknown", "drop") == 0
    captured = capsys.readouterr()
    first, second = (line.split("\t")[1] for line in captured.out.splitlines())
    assert first == second
    assert "(left out)" in captured.err
    assert _run("predict", model, "xx", "--unknown", "drop") == 0
    captured = capsys.readouterr()
    assert captured.out == "xx\t\n"
    assert "has no symbol to answer" in captured.err
    assert _run("predict", model, "abc", "axb", "dd", "--unknown", "fail") == 2
    captured = capsys.readouterr()
    assert captured.out.startswith("abc\t")
    assert captured.out.count("\n") == 1
    assert "word 2: the text has symbols that the model never saw" in captured.err


def test_a_model_together_with_itself_answers_as_alone(model, capsys):
    assert _run("predict", model, "abc", "dd", "--scores") == 0
    alone = capsys.readouterr().out
    assert _run("predict", model, "abc", "dd", "--scores", "--with", model) == 0
    assert capsys.readouterr().out == alone


def test_every_line_in_gets_one_line_out_whatever_it_holds(model, typed, capsys):
    draw = random.Random(7)
    pieces = [*"abcd\t\\\r \x1b\x7f\x85\u2028\u0301\u05d0\u200f\ufeff", "e\u0301", "\U0001f600"]
    lines = ["".join(draw.choices(pieces, k=draw.randrange(9))) for _ in range(211)]
    for options in (
        [],
        ["--unknown", "drop"],
        ["--unknown", "copy"],
        ["--nbest", "1", "--align"],
    ):
        typed("\n".join([*lines, ""]).encode())
        assert _run("predict", model, *options) == 0
        out = capsys.readouterr().out
        assert out.count("\n") == len(lines)
        for line, answer in zip(lines, out.split("\n"), strict=False):
            # A carriage return at the very end belongs to the line end.
            text = line.removesuffix("\r")
            escaped = text.replace("\\", r"\\").replace("\t", r"\t").replace("\r", r"\r")
            assert answer.startswith(escaped + "\t" if text else "")


@pytest.fixture(scope="module")
def inflector(tmp_path_factory):
    path = tmp_path_factory.mktemp("features")
    words = ["".join(letters) for letters in itertools.product("abc", repeat=3)]
    (path / "d.tsv").write_text("".join(f"{w}\t{w}s\tN;PL\n" for w in words))
    sizes = ("--hidden", "7", "--state", "11", "--steps", "7")
    columns = ("--features-column", "3")
    assert _run("train", path / "d.tsv", "--out", path / "m", *sizes, *columns) == 0
    return path / "m"


def test_features_are_a_column_of_input_and_output(inflector, typed, capsys):
    typed(b"ab\tN;PL\nab\n\tN;PL\n")
    assert _run("predict", inflector, "--scores") == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [["ab", "N;PL"], ["ab", ""], ["", "N;PL"]]
    assert all(len(row) == 4 for row in rows)
    assert _run("predict", inflector, "ab\tN;XX", "--format", "json", "--align") == 0
    captured = capsys.readouterr()
    answer = json.loads(captured.out)
    assert answer["source"] == "ab\tN;XX"
    assert answer["source_symbols"] == ["[N]", "[XX]", "a", "b"]
    assert "'[XX]'" in captured.err


def test_an_unknown_feature_is_never_copied(inflector, capsys):
    assert _run("predict", inflector, "ab\tX;Y;Z;W", "--unknown", "copy") == 0
    answer = capsys.readouterr().out.rstrip("\n").split("\t")[2]
    assert set(answer) <= set("abcs")


def test_answers_longer_than_training_had_are_asked_for_in_so_many_words(model, capsys):
    # The longest target has three symbols, and five more are granted.
    assert _run("predict", model, "abc", "--min-length", "9") == 2
    said = capsys.readouterr().err
    assert "--min-length: 9 is more than this model's answers have" in said
    assert "up to 8," in said
    for options in (("--min-length", "8"), ("--min-length", "9", "--max-length", "11")):
        assert _run("predict", model, "abc", *options) == 0
        answer = capsys.readouterr().out.rstrip("\n").split("\t")[1].split()
        assert len(answer) >= int(options[1])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--beam", "0"], "--beam: 0 is refused"),
        (["--beam", "2", "--nbest", "3"], "--nbest 3 asks for more answers than --beam 2"),
        (["--length-penalty", "long"], "--length-penalty: long is refused"),
        (["--temperature", "1", "--beam", "2"], "--temperature and --beam contradict"),
        (["--min-length", "3", "--max-length", "2"], "contradict each other"),
        (["--allow", "xyz"], "`allow` has no symbol that the model can answer"),
        (["--allow", "@nowhere"], "nowhere: there is no such file"),
        (["--lexicon", "nowhere"], "nowhere: there is no such file"),
        (["--with", "nowhere"], "nowhere: there is no such directory"),
    ],
)
def test_options_of_the_search_that_make_no_sense_are_refused(model, capsys, options, said):
    assert _run("predict", model, "abc", *options) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""


def test_a_terminal_gets_no_control_characters(model, capsys, monkeypatch):
    for form in ("tsv", "json"):
        arguments = ("predict", model, "a\x1b[2Jb\x9b", "--format", form)
        assert _run(*arguments) == 0
        assert "\x9b" in capsys.readouterr().out
        with monkeypatch.context() as patch:
            patch.setattr(sys.stdout, "isatty", lambda: True)
            assert _run(*arguments) == 0
        out = capsys.readouterr().out
        assert r"a\u001b[2Jb\u009b" in out
        assert not {"\x1b", "\x9b"} & set(out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--threads", "100000"], "--threads: 100000 is refused"),
        (["--threads", "0"], "--threads: 0 is refused"),
        (["--longest", "x"], "--longest: x is refused"),
        (["--output", "."], "this is a directory"),
        (["--output", ""], "--output: the path is empty"),
    ],
)
def test_an_option_that_is_refused_is_named(model, capsys, arguments, said):
    assert _run("predict", model, "abc", *arguments) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "\n  help " in err


def test_a_file_in_place_of_a_model_is_called_a_file(model, capsys):
    assert _run("predict", model / "config.json", "abc") == 2
    err = capsys.readouterr().err
    assert "this is a file, not a directory" in err
    assert f"name {model}" in err


def _shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f"{sys.executable} -m regard {line}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("abc >&-", 2, "standard output is closed"),
        ("<&-", 2, "standard input is closed"),
        ("abc <&-", 0, ""),
        ("abc 2>&-", 0, ""),
        ("abc > /dev/full", 2, "standard output: cannot be written"),
    ],
)
def test_a_closed_or_full_stream_is_one_clean_message(model, line, code, said):
    found = _shell(f"predict {model} {line}")
    assert found.returncode == code, found.stderr
    assert said in found.stderr
    assert "Traceback" not in found.stderr
    assert "Exception ignored" not in found.stderr
    assert found.stdout.startswith("abc\t") == (code == 0)


def _regard(*arguments, **environment) -> subprocess.Popen:
    # Unbuffered output would hide that an answer is held back.
    inherited = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    return subprocess.Popen(
        [sys.executable, "-m", "regard", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=inherited | environment,
    )


def test_a_line_on_stdin_is_answered_before_the_next_one_comes(model):
    with _regard("predict", model) as process:
        for word in (b"abc", b"dd"):
            process.stdin.write(word + b"\n")
            process.stdin.flush()
            # Would wait for ever if the answer were held back.
            assert process.stdout.readline().startswith(word + b"\t")
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_a_reader_that_goes_away_ends_the_run_in_silence(model):
    with _regard("predict", model) as process:
        process.stdout.close()
        try:
            process.stdin.write(b"abc\n" * 997)
            process.stdin.close()
        except BrokenPipeError:
            pass
        err = process.stderr.read()
        assert process.wait(timeout=60) == 141
        assert err == b""


def test_the_output_is_utf_8_in_any_locale(model):
    for setting in ({"LC_ALL": "C"}, {"PYTHONIOENCODING": "latin-1"}):
        with _regard("predict", model, "a\u00e9\u03b1", **setting) as process:
            out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert out.decode("utf-8").startswith("a\u00e9\u03b1\t")


def test_ctrl_c_leaves_no_half_of_an_output(model, tmp_path):
    with _regard("predict", model, "--output", tmp_path / "out.tsv") as process:
        process.stdin.write(b"abc\n")
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not os.listdir(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert os.listdir(tmp_path) != ["out.tsv"]
        process.send_signal(signal.SIGINT)
        err = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert err == b"interrupted\n"
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "lacking"),
    [("abc", "features behind a tab"), ("abc\t", "features behind a tab"), ("\tN", "text")],
)
def test_a_text_without_its_half_is_warned_of(inflector, capsys, text, lacking):
    assert _run("predict", inflector, text) == 0
    assert f"input 1 has no {lacking}" in capsys.readouterr().err
    assert _run("predict", inflector, "abc\tN") == 0
    assert "has no" not in capsys.readouterr().err
