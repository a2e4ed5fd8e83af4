"""The command line of `regard check`, with a stand-in for the engine."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.cli import check as command
from regard.cli.main import run

TESTS = str(Path(__file__).parents[1])
BAD = "def attend(q, k):\n    w = BAD(q @ k)\n    return w @ k\n"
GOOD = BAD.replace("BAD", "GOOD")


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    path = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (TESTS, path))))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command, "_ENGINE", "check_engines:swap")
    Path("bad.py").write_text(BAD)
    Path("good.py").write_text(GOOD)
    return tmp_path


@pytest.fixture
def check(capsys):
    """Run the command; its code, stdout and stderr."""

    def run_it(*arguments):
        code = run(["check", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_it


def test_a_finding_is_exit_code_one_and_the_report_is_all_of_stdout(check):
    code, out, err = check("bad.py:attend", "--format", "json")
    assert code == 1
    report = json.loads(out)
    assert report["target"] == "bad.py:attend"
    assert [finding["code"] for finding in report["findings"]] == ["RG301"]
    assert report["findings"][0]["fix"]["status"] == "proven"
    assert report["checked"] == ["weights-sum-to-one"]
    assert err == "repeat: regard check bad.py:attend --format json --seed 0\n"


def test_the_line_that_repeats_a_run_does_repeat_it(check):
    Path("-odd name.py").write_text(BAD)
    code, out, err = check("--format", "concise", "--", "-odd name.py:attend")
    assert code == 1
    line = "repeat: regard check --format concise --seed 0 -- '-odd name.py:attend'\n"
    assert err == line
    again = shlex.split(line.removeprefix("repeat: "))[2:]
    assert check(*again)[:2] == (code, out)


def test_nothing_found_is_exit_code_zero(check):
    code, out, _ = check("good.py:attend", "--format", "json")
    assert code == 0
    assert json.loads(out)["findings"] == []


def test_several_targets_are_one_report(check):
    code, out, _ = check("good.py:attend", "bad.py:attend", "--format", "json")
    assert code == 1
    assert [r["target"] for r in json.loads(out)["results"]] == [
        *("good.py:attend", "bad.py:attend")
    ]


def test_a_broken_file_is_exit_code_two_with_its_line_and_the_others_are_answered(check):
    Path("broken.py").write_text("x = 1\ndef attend(:\n")
    code, out, _ = check("broken.py:attend", "bad.py:attend", "--format", "json")
    assert code == 2
    broken, bad = json.loads(out)["results"]
    assert broken["findings"][0]["code"] == "RG901"
    assert broken["findings"][0]["location"]["line"] == 2
    assert broken["checked"] == []
    assert len(bad["findings"]) == 1


@pytest.mark.parametrize(
    "form", ["full", "concise", "json", "sarif", "github", "junit", "html"]
)
def test_every_format_is_written_and_names_the_rule(check, form):
    code, out, _ = check("bad.py:attend", "--format", form)
    assert code == 1
    assert "RG301" in out
    assert out.endswith("\n")


def test_the_report_goes_to_a_file_that_is_not_overwritten_unasked(check):
    code, out, _ = check("bad.py:attend", "-o", "report.txt")
    assert (code, out) == (1, "")
    assert "RG301" in Path("report.txt").read_text()
    code, out, err = check("bad.py:attend", "-o", "report.txt")
    assert code == 2
    assert "--force" in err
    assert check("bad.py:attend", "-o", "report.txt", "--force")[0] == 1


def test_what_counts_can_be_chosen(check):
    assert check("bad.py:attend", "--exit-zero")[0] == 0
    assert check("bad.py:attend", "--ignore", "softmax-axis")[0] == 0
    assert check("bad.py:attend", "--select", "RG2")[0] == 0
    assert check("bad.py:attend", "--select", "RG2,RG3")[0] == 1
    assert check("bad.py:attend", "--fail-on", "note")[0] == 1
    code, out, err = check("bad.py:attend", "--select", "RG31")
    assert (code, out) == (2, "")
    assert "RG301" in err


def test_exit_zero_does_not_hide_that_nothing_was_checked(check):
    Path("broken.py").write_text("(\n")
    assert check("broken.py:attend", "--exit-zero")[0] == 2


def test_a_comment_accepts_a_finding_and_a_useless_one_is_a_warning(check):
    Path("bad.py").write_text(BAD.replace("k)\n", "k)  # regard: ignore[RG301] by design\n", 1))
    code, out, _ = check("bad.py:attend", "--format", "json")
    assert code == 0
    assert json.loads(out)["findings"][0]["suppressed"] == "by design"
    Path("good.py").write_text(GOOD.replace("@ k\n", "@ k  # regard: ignore[RG301] once\n"))
    code, _, err = check("good.py:attend")
    assert code == 0
    assert "warning: good.py:3: ignore[RG301] ignores nothing; remove it\n" in err


def test_a_fix_is_applied_shown_saved_and_checked_again(check):
    code, out, err = check("bad.py:attend", "--fix", "--format", "json")
    assert code == 0
    assert Path("bad.py").read_text() == GOOD
    assert json.loads(out)["findings"] == []
    assert "-    w = BAD(q @ k)\n+    w = GOOD(q @ k)\n" in err
    assert "fixed RG301 in bad.py\n" in err
    assert "checked again: nothing is found any more\n" in err
    (undo,) = [line for line in err.splitlines() if line.startswith("undo: ")]
    subprocess.run(undo.removeprefix("undo: ").split(), check=True)
    assert Path("bad.py").read_text() == BAD


def test_a_fix_outside_this_folder_can_be_undone_as_well(check, folder, monkeypatch):
    (folder / "here").mkdir()
    monkeypatch.chdir("here")
    _, _, err = check("../bad.py:attend", "--fix")
    assert Path("../bad.py").read_text() == GOOD
    (undo,) = [line for line in err.splitlines() if line.startswith("undo: ")]
    subprocess.run(shlex.split(undo.removeprefix("undo: ")), check=True)
    assert Path("../bad.py").read_text() == BAD


def test_without_fix_nothing_is_written(check, folder):
    before = sorted(os.listdir(folder))
    check("bad.py:attend")
    assert sorted(os.listdir(folder)) == before
    assert Path("bad.py").read_text() == BAD


def test_nothing_to_fix_is_said(check, folder):
    code, _, err = check("good.py:attend", "--fix")
    assert code == 0
    assert "nothing to fix: no finding has a proven fix\n" in err
    assert not (folder / ".regard").exists()


def test_what_is_not_selected_is_not_fixed(check):
    check("bad.py:attend", "--fix", "--ignore", "RG301")
    assert Path("bad.py").read_text() == BAD


def test_the_regression_test_is_written_and_shown(check, monkeypatch):
    monkeypatch.setattr(command, "_ENGINE", "check_engines:tested")
    assert check("--write-test", "bad.py:Attention")[0] == 2
    code, _, err = check("--write-test", "bad.py:attend")
    assert code == 1
    text = Path("test_bad_attend.py").read_text()
    assert text.startswith("# keeps RG301 away, ")
    assert f"+{text.splitlines()[0]}\n" in err
    assert "keep it fixed: pytest test_bad_attend.py\n" in err
    assert "holds this test already" in check("bad.py:attend", "--write-test")[2]
    Path("test_mine.py").write_text("mine\n")
    code, _, err = check("bad.py:attend", "--write-test", "test_mine.py")
    assert code == 2
    assert Path("test_mine.py").read_text() == "mine\n"
    check("bad.py:attend", "--write-test", "test_mine.py", "--force")
    assert Path("test_mine.py").read_text() == text
    code, _, err = check("bad.py:attend", "./bad.py:attend", "--write-test", "test_new.py")
    assert code == 2
    assert "one file is named for 2 tests" in err


def test_no_test_is_said(check):
    assert "no test is written" in check("good.py:attend", "--write-test")[2]


@pytest.fixture
def seen(check, monkeypatch):
    """What the engine is told: contract and options."""
    monkeypatch.setattr(command, "_ENGINE", "check_engines:echo")

    def ask(*arguments):
        _, out, err = check(*arguments, "--format", "json")
        assert out, err
        return json.loads(json.loads(out)["assumptions"][0])

    return ask


def test_a_contract_is_handed_to_the_engine(seen):
    contract = {"inputs": {"q": "batch T_dec d_s"}, "score": "dot"}
    Path("c.json").write_text(json.dumps(contract))
    Path("c.toml").write_text('score = "dot"\n[inputs]\nq = "batch T_dec d_s"\n')
    for name in ("c.json", "c.toml"):
        told = seen("good.py:attend", "--contract", name, "--seed", "5", "--no-repair")
        assert told["contract"] == contract
        assert told["options"] == {"seed": 5, "repair": False, "flags": None}


def test_a_contract_alone_says_what_to_check(seen):
    Path("c.json").write_text('{"target": "good.py:attend", "score": "dot"}')
    assert seen("--contract", "c.json")["contract"]["score"] == "dot"


def test_flags_are_the_statements_of_a_contract(seen):
    told = seen(
        "good.py:attend",
        *("--axes", "q=batch T_dec d_s", "--axes", "lens=batch", "--kind", "lens=lengths"),
        *("--returns", "context=batch T_dec d_h", "--returns", "w=batch T_dec T_enc"),
        *("--weights", "w", "--score", "scaled_dot", "--scale", "1/sqrt(d_s)"),
        *("--causal", "top_left", "--window", "3", "--positions", "yes"),
        *(
            "--init",
            "size=d_s",
            "--init",
            "p=0.5",
            "--init",
            "bias=true",
            "--value",
            "n=[0, 2]",
        ),
        *("--size", "d_s=8", "--paper", "luong", "--mask", "drop", "--all-masked", "zeros"),
        *("--mode", "train", "--dtype", "float16", "--padding", "left", "--layer", "top"),
        *("--activation", "relu"),
    )
    assert told["contract"] is None
    assert told["options"]["flags"] == {
        "inputs": {"q": "batch T_dec d_s", "lens": "batch"},
        "kinds": {"lens": "lengths"},
        "returns": [
            {"name": "context", "axes": "batch T_dec d_h"},
            {"name": "w", "axes": "batch T_dec T_enc"},
        ],
        "weights": {"output": "w"},
        "score": "scaled_dot",
        "scale": "1/sqrt(d_s)",
        "causal": "top_left",
        "window": 3,
        "positions": True,
        "init": {"size": "d_s", "p": 0.5, "bias": True},
        "values": {"n": [0, 2]},
        "sizes": {"d_s": 8},
        "convention": "luong",
        "mask": "drop",
        "all_masked": "zeros",
        "mode": "train",
        "dtype": "float16",
        "padding": "left",
        "layer": "top",
        "activation": "relu",
    }


def test_the_project_says_what_it_always_wants(seen):
    Path("pyproject.toml").write_text(
        '[tool.regard]\ntargets = ["good.py:attend"]\nmask = "drop"\npaper = "luong"\n'
        'roles = {memory = "key"}\n'
    )
    always = {"mask": "drop", "convention": "luong", "roles": {"memory": "key"}}
    assert seen()["options"]["flags"] == always
    assert seen("--mask", "keep")["options"]["flags"] == {**always, "mask": "keep"}
    Path("c.json").write_text('{"convention": "bahdanau", "mask": "keep"}')
    flags = seen("good.py:attend", "--contract", "c.json")["options"]["flags"]
    assert flags == {"roles": {"memory": "key"}}


def test_rules_that_the_project_leaves_out_stay_out(check):
    Path("pyproject.toml").write_text('[tool.regard]\nignore = ["RG301"]\n')
    assert check("bad.py:attend")[0] == 0
    Path("pyproject.toml").write_text('[tool.regard]\nselect = ["RG2"]\n')
    assert check("bad.py:attend")[0] == 0
    assert check("bad.py:attend", "--select", "RG3")[0] == 1


REFUSED = {
    "no target": ([], "there is nothing to check"),
    "no file": (["none.py:attend"], "no such file"),
    "no name": (["bad.py:attent"], "did you mean `attend`?"),
    "no contract": (["bad.py:attend", "--contract", "no.json"], "no such file"),
    "bad JSON": (["bad.py:attend", "--contract", "half.json"], "expected  JSON"),
    "bad TOML": (["bad.py:attend", "--contract", "half.toml"], "expected  TOML"),
    "a list": (["bad.py:attend", "--contract", "list.json"], "a table of statements"),
    "unknown key": (["bad.py:attend", "--contract", "key.json"], "'inputs'"),
    "wrong form": (["bad.py:attend", "--contract", "form.json"], "form.json"),
    "binary": (["bad.py:attend", "--contract", "binary.json"], "binary.json"),
    "many targets": (
        ["bad.py:attend", "good.py:attend", "--contract", "ok.json"],
        "a contract is given for several targets",
    ),
    "many targets, flags": (
        ["bad.py:attend", "good.py:attend", "--axes", "q=batch T_dec d_s"],
        "`inputs` is given for several targets",
    ),
    "no pair": (["bad.py:attend", "--axes", "q"], "expected  NAME=VALUE"),
    "twice": (["bad.py:attend", "--axes", "q=a", "--axes", "q=b"], "each name once"),
    "unknown kind": (["bad.py:attend", "--kind", "m=kep"], "'keep'"),
    "unknown score": (["bad.py:attend", "--score", "scaled-dot"], "'scaled_dot'"),
    "size": (["bad.py:attend", "--size", "d_s=big"], "a whole number of at least 1"),
    "time": (["bad.py:attend", "--time", "0"], "a number from 0.1"),
    "memory": (["bad.py:attend", "--memory", "lots"], "a whole number"),
    "batch and target": (["bad.py:attend", "--batch", "b.jsonl"], "leave TARGET out"),
    "batch and format": (["--batch", "b.jsonl", "--format", "full"], "leave --format out"),
    "no batch": (["--batch", "none.jsonl"], "a readable file, one JSON object a line"),
    "settings": (["sub/bad.py:attend"], "did you mean `ignore`?"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_is_one_clear_error_and_exit_code_two(check, folder, case):
    arguments, said = REFUSED[case]
    Path("half.json").write_text('{"inputs": ')
    Path("half.toml").write_text("inputs = ")
    Path("list.json").write_text("[]")
    Path("key.json").write_text('{"input": {}}')
    Path("form.json").write_text('{"weights": 3, "returns": 5, "sizes": [1]}')
    Path("binary.json").write_bytes(b"\xff\xfe\x00")
    Path("ok.json").write_text("{}")
    (folder / "sub").mkdir()
    Path("sub/bad.py").write_text(BAD)
    Path("sub/pyproject.toml").write_text("[tool.regard]\nignor = []\n")
    code, out, err = check(*arguments)
    assert (code, out) == (2, "")
    assert said in err
    assert "Traceback" not in err
    assert err.lower().count("error:") == 1


def _batch(*lines):
    Path("batch.jsonl").write_text("".join(line + "\n" for line in lines))


def test_a_batch_is_answered_line_by_line_in_order(check):
    Path("c.json").write_text('{"score": "dot"}')
    _batch(
        '{"id": "first", "target": "bad.py:attend", "contract": "c.json"}',
        "",
        '{"id": 2, "target": "good.py:attend", "contract": null}',
        '{"id": [3], "target": "none.py:attend"}',
        "{nonsense",
        '{"id": 5, "target": "bad.py:attend", "contract": {"scor": "dot"}}',
        '{"id": 6, "target": "bad.py:attend", "contract": "no.json"}',
        '{"id": 7, "goal": "bad.py:attend"}',
        "[]",
        '{"id": 8, "target": "good.py:attend", "contract": {"score": "dot"}}',
    )
    code, out, err = check("--batch", "batch.jsonl", "--format", "json", "--jobs", "2")
    assert code == 2
    answers = [json.loads(line) for line in out.splitlines()]
    assert [answer["id"] for answer in answers] == ["first", 2, [3], None, 5, 6, 7, None, 8]
    assert [answer["rc"] for answer in answers] == [1, 0, 2, 2, 2, 2, 2, 2, 0]
    assert [len(answer["findings"]) for answer in answers] == [1, 0, 0, 0, 0, 0, 0, 0, 0]
    assert answers[0]["checked"] == ["weights-sum-to-one"]
    assert answers[0]["seconds"] > 0
    assert all(answer["checked"] == [] for answer in answers if answer["rc"] == 2)
    assert "no such file" in answers[2]["error"]
    assert "line 5 of the batch" in answers[3]["error"]
    assert "'score'" in answers[4]["error"]
    assert "Traceback" not in err


def test_what_a_line_of_a_batch_declares_goes_before_the_project(check, monkeypatch):
    monkeypatch.setattr(command, "_ENGINE", "check_engines:echo")
    Path("pyproject.toml").write_text('[tool.regard]\nmask = "drop"\npaper = "luong"\n')
    _batch(
        '{"id": 1, "target": "good.py:attend", "contract": {"mask": "keep"}}',
        '{"id": 2, "target": "good.py:attend", "contract": {"convention": "bahdanau"}}',
        '{"id": 3, "target": "good.py:attend"}',
    )
    _, out, _ = check("--batch", "batch.jsonl")
    told = [json.loads(json.loads(line)["assumptions"][0]) for line in out.splitlines()]
    assert [each["options"]["flags"] for each in told] == [
        {"convention": "luong"},
        {"mask": "drop"},
        {"mask": "drop", "convention": "luong"},
    ]


def test_the_exit_code_of_a_batch_is_that_of_its_worst_answer(check):
    _batch('{"id": 1, "target": "good.py:attend"}')
    assert check("--batch", "batch.jsonl")[0] == 0
    _batch('{"id": 1, "target": "good.py:attend"}', '{"id": 2, "target": "bad.py:attend"}')
    assert check("--batch", "batch.jsonl")[0] == 1
    assert check("--batch", "batch.jsonl", "--exit-zero")[0] == 0
    _batch()
    assert check("--batch", "batch.jsonl")[:2] == (0, "")


def test_the_help_begins_with_an_example_names_the_limits_and_imports_little():
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys\nfrom regard.cli.main import run\ncode = run(['check', '--help'])\n"
            "heavy = {'torch', 'numpy', 'rich', 'regard.check'} & set(sys.modules)\n"
            "assert not heavy, heavy\nsys.exit(code)",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith("Example:\n  regard check ")
    for said in ("temporary folder", "not malice", "30.0", "4096", "ignore[RG205]"):
        assert said in found.stdout


def test_the_parent_loads_neither_torch_nor_the_users_code(folder):
    code = (
        "import sys\nfrom regard.cli import check\nfrom regard.cli.main import run\n"
        "check._ENGINE = 'check_engines:swap'\ncode = run(['check', 'loud.py:attend'])\n"
        "heavy = {'torch', 'numpy', 'loud'} & set(sys.modules)\n"
        "assert not heavy, heavy\nsys.exit(code)"
    )
    Path("loud.py").write_text("import torch\nprint('loud')\n" + GOOD)
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert "loud'" not in found.stdout


def test_ctrl_c_is_one_word_and_code_130_and_ends_the_users_code(folder):
    Path("slow.py").write_text(GOOD)
    code = (
        "from regard.cli import check, main\ncheck._ENGINE = 'check_engines:sleep'\n"
        "main.main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, "check", "slow.py:attend"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not _running(folder, "regard.check.worker"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.endswith("interrupted\n")
    while _running(folder, "regard.check.worker"):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _running(folder, what):
    """Processes of a module in a folder, where /proc can tell."""
    if not os.path.isdir("/proc/self"):
        pytest.skip("needs /proc")
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            here = os.readlink(f"/proc/{name}/cwd") == str(folder)
            line = Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if here and what in line:
            found.append(name)
    return found


def test_one_wrong_target_of_a_project_does_not_keep_the_others_from_being_checked(check):
    Path("pyproject.toml").write_text(
        '[tool.regard]\ntargets = ["gone.py:attend", "bad.py:attend", "good.py:atend"]\n'
    )
    code, out, _ = check("--format", "json")
    assert code == 2
    gone, bad, wrong = json.loads(out)["results"]
    assert "`gone.py` cannot be read" in gone["findings"][0]["message"]
    assert [finding["code"] for finding in bad["findings"]] == ["RG301"]
    assert "did you mean `attend`?" in wrong["findings"][0]["message"]
    code, _, err = check("--fix")
    assert code == 2
    assert "checked again: 2 errors" in err
    assert Path("bad.py").read_text() == GOOD
    code, out, err = check("gone.py:attend", "bad.py:attend")
    assert (code, out) == (2, "")


def test_a_warning_about_a_comment_comes_once_a_file(check):
    Path("two.py").write_text(f"{BAD}# regard: ignore[RG999] typo\n" + BAD.replace("att", "b"))
    _, _, err = check("two.py:attend", "two.py:bend")
    assert err.count("knows no rule 'RG999'") == 1


def test_both_names_that_pytest_gives_test_files_are_names_for_the_test(check, monkeypatch):
    monkeypatch.setattr(command, "_ENGINE", "check_engines:tested")
    assert check("bad.py:attend", "--write-test", "bad_test.py")[0] == 1
    assert Path("bad_test.py").read_text().startswith("# keeps RG301 away, ")


def test_a_folder_as_output_suggests_a_name_of_the_format(check):
    assert "report.txt" in check("bad.py:attend", "--output", ".")[2]
    assert "report.json" in check("bad.py:attend", "--output", ".", "--format", "json")[2]


def test_an_error_about_a_statement_keeps_its_rows(check, monkeypatch):
    monkeypatch.setattr(command, "_ENGINE", "check_engines:refuse")
    code, out, err = check("bad.py:attend")
    assert (code, out) == (2, "")
    assert "error: check: no such thing\n  expected  another\n  got       this\n" in err
    code, out, _ = check("bad.py:attend", "good.py:attend", "--format", "json")
    assert code == 2
    codes = [report["findings"][0]["code"] for report in json.loads(out)["results"]]
    assert codes == ["RG902", "RG902"]


def test_the_help_says_which_exit_code_counts_of_several_targets(check):
    out = " ".join(check("--help")[1].split())
    assert "the highest counts: 2 if one could not be checked" in out
