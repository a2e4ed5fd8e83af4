import os
import signal
import subprocess
import sys
import time

import click
import pytest

from regard.cli import verbs
from regard.cli.main import run
from regard.errors import InputError
from regard.version import __version__


def _python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )


def test_help_imports_no_array_library():
    found = _python(
        "import sys\nfrom regard.cli.main import run\ncode = run(['--help'])\n"
        "heavy = {'torch', 'numpy', 'jax', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy\nsys.exit(code)"
    )
    assert found.returncode == 0, found.stderr
    for verb in ("demo", "train", "predict", "eval"):
        assert f"\n  {verb} " in found.stdout


@pytest.mark.parametrize("verb", ["train", "predict", "eval"])
def test_the_help_of_a_verb_begins_with_an_example_and_imports_no_torch(verb):
    found = _python(
        "import sys\nfrom regard.cli.main import run\ncode = run(sys.argv[1:])\n"
        "heavy = {'torch', 'numpy', 'jax'} & set(sys.modules)\n"
        "assert not heavy, heavy\nsys.exit(code)",
        verb,
        "--help",
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.startswith(f"Example:\n  regard {verb} ")
    assert f"Usage: regard {verb} " in found.stdout


def test_the_version_is_printed(capsys):
    assert run(["--version"]) == 0
    assert __version__ in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [["nothing"], ["--nothing"], ["train"], ["eval", "x"]])
def test_a_wrong_command_line_is_refused_with_code_two(arguments, capsys):
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Error" in captured.err
    assert "Traceback" not in captured.err


@pytest.fixture
def verb(monkeypatch):
    """Put one verb on the table that does what it is told."""

    def put(action):
        module = type(sys)("regard_test_verb")
        module.command = click.Command("try", callback=action)
        monkeypatch.setitem(sys.modules, "regard_test_verb", module)
        monkeypatch.setitem(verbs._VERBS, "try", ("regard_test_verb:command", "x"))

    return put


def _raise(error):
    def action():
        raise error

    return action


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (InputError("d.tsv: bad\n  got       x"), 2, "error: d.tsv: bad\n  got       x\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (OSError(28, "No space left on device"), 2, "standard output: cannot be written"),
        (OSError(28, "No space left on device", "a.txt"), 2, "a.txt"),
        (MemoryError(), 2, "there is not enough memory"),
        (RuntimeError("DefaultCPUAllocator: can't"), 2, "there is not enough memory"),
        (ModuleNotFoundError("no", name="safetensors"), 2, "pip install 'regard[train]'"),
        (ModuleNotFoundError("no", name="torch.nn"), 2, "pip install 'regard[train]'"),
    ],
)
def test_an_error_is_one_clean_message_and_a_code(verb, capsys, error, code, said):
    verb(_raise(error))
    assert run(["try"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


def test_a_defect_of_ours_keeps_its_traceback(verb):
    for error in (
        ZeroDivisionError(),
        RuntimeError("x"),
        ModuleNotFoundError("no", name="regard.nothing"),
    ):
        verb(_raise(error))
        with pytest.raises(type(error)):
            run(["try"])


@pytest.mark.parametrize(("answer", "code"), [(None, 0), (0, 0), (1, 1)])
def test_what_a_verb_returns_is_the_exit_code(verb, answer, code):
    verb(lambda: answer)
    assert run(["try"]) == code


def test_the_module_runs_as_a_program():
    found = subprocess.run(
        [sys.executable, "-m", "regard", "--version"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C"},
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert __version__ in found.stdout


def test_the_help_begins_with_an_example_as_it_is_typed(capsys):
    assert run(["--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(
        "Example:\n  regard train g2p --preset quick --out g2p-model\n  regard predict"
    )
    assert "\b" not in out
    assert "\\b" not in out


@pytest.mark.parametrize("delay", [0, 0.05, 0.3, 0.6, 1.1])
@pytest.mark.parametrize(
    "arguments", [("predict", "m"), ("eval", "m", "d"), ("demo", "--out", "o")]
)
def test_ctrl_c_during_imports_is_one_word_and_code_130(tmp_path, delay, arguments):
    code = (
        "import os, sys\nfrom regard.cli import main, verbs\n"
        # What follows the imports waits, so that no delay comes too late.
        "class Slow:\n"
        "    def __getattr__(self, name):\n        import time; time.sleep(60)\n"
        "sys.modules['regard.seq2seq.runtimes'] = Slow()\n"
        "sys.modules['regard.seq2seq.interrupt'] = Slow()\n"
        "main.listen()\nprint('ready', flush=True)\nmain.main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")
    assert os.listdir(tmp_path) == []
