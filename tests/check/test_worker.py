"""Code that hangs, dies, writes or reaches out costs its own answer and nobody else's."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from regard.check.process import WorkerProcess
from regard.check.settings import Limits
from regard.check.target import Target

ENGINE = "check_engines:call"
TESTS = str(Path(__file__).parents[1])


@pytest.fixture(autouse=True)
def engines(monkeypatch, tmp_path):
    """Let the process find the stand-in engine, and run in a folder of its own."""
    path = os.environ.get("PYTHONPATH", "")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (TESTS, path))))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def worker():
    """Start processes with the limits that a test wants, and end them."""
    started = []

    def start(*, seconds=20.0, memory=512, fork=True, engine=ENGINE):
        process = WorkerProcess(Limits(seconds, memory), engine=engine, fork=fork)
        started.append(process)
        return process

    yield start
    for process in started:
        process.close()


def _target(source, entry="attend", path="subject.py"):
    Path(path).write_text(source, encoding="utf-8")
    return Target(path, entry, source)


def _good(number=7):
    return _target(f"def attend():\n    return {number}\n", path="good.py")


def _only(report):
    assert report.checked == ()
    (finding,) = report.findings
    return finding


@pytest.fixture(params=[True, False], ids=["fork", "process"])
def either(request):
    """Both ways of running a target."""
    return request.param


def test_one_process_answers_many_targets_and_none_sees_the_other(worker):
    process = worker()
    first = process.check(
        _target("import math, sys\nmath.tau = 3\nsys.seen = 1\ndef attend():\n    return 5\n"),
        None,
        {},
    )
    second = process.check(
        _target("import math, sys\ndef attend():\n    return math.tau, hasattr(sys, 'seen')\n"),
        None,
        {},
    )
    assert first.signature == "5"
    assert second.signature == "(6.283185307179586, False)"
    assert first.seconds > 0


def test_contract_and_options_arrive_and_unknown_options_do_not(worker):
    report = worker().check(_good(), {"score": "dot"}, {"seed": 3, "nonsense": 1})
    assert report.assumptions == (
        "{'score': 'dot'}",
        "{'seed': 3, 'repair': True, 'flags': None}",
    )
    assert report.seed == 3


MISBEHAVIOUR = {
    "hangs-while-loading": ("x = 0\nwhile True: x = 1\n", "RG901", "within 1 s", 2),
    "hangs-when-called": (
        "def attend():\n    x = 0\n    while True: x = 1\n",
        "RG904",
        "still in `attend`",
        3,
    ),
    "sleeps": ("import time\ndef attend():\n    time.sleep(99)\n", "RG904", "within 1 s", 3),
    "quits-while-loading": ("import sys\nsys.exit(3)\n", "RG901", "it called sys.exit(3)", 2),
    "quits-when-called": (
        "def attend():\n    raise SystemExit\n",
        "RG904",
        "it called sys.exit()",
        2,
    ),
    "ends-the-process": (
        "import os\ndef attend():\n    os._exit(0)\n",
        "RG904",
        "it tried to call os._exit(0)",
        3,
    ),
    "crashes-the-interpreter": (
        "import ctypes\ndef attend():\n    ctypes.string_at(0)\n",
        "RG904",
        "died of SIGSEGV",
        3,
    ),
    "aborts": ("import os\ndef attend():\n    os.abort()\n", "RG904", "died of SIGABRT", 3),
    "kills-itself": (
        "import os, signal\ndef attend():\n    os.kill(os.getpid(), signal.SIGKILL)\n",
        "RG904",
        "died of SIGKILL",
        1,
    ),
    "takes-all-memory": (
        "def attend():\n    return len(bytearray(2**33))\n",
        "RG904",
        "within 512 MiB of memory",
        2,
    ),
    "grows-without-bound": (
        "def attend():\n    all = []\n    while True:\n        all.append(bytearray(2**24))\n",
        "RG904",
        "within 512 MiB of memory",
        4,
    ),
    "lacks-an-import": (
        "import numpy\nimport no_such_library\n",
        "RG901",
        "ModuleNotFoundError: No module named 'no_such_library'",
        2,
    ),
    "raises-while-loading": (
        "def check():\n    return 1 / 0\nX = check()\n",
        "RG901",
        "ZeroDivisionError: division by zero",
        2,
    ),
    "raises-when-called": ("def attend():\n    return 1 / 0\n", "RG904", "ZeroDivision", 2),
    "raises-what-cannot-be-shown": (
        "class Odd(BaseException):\n    def __str__(self):\n        raise ValueError\n"
        "def attend():\n    raise Odd\n",
        "RG904",
        "Odd",
        5,
    ),
    "reads-stdin": ("name = input()\n", "RG901", "EOFError", 1),
    "writes-a-file": (
        "def attend():\n    open('made.txt', 'w')\n",
        "RG904",
        "it tried to write the file made.txt, which is refused",
        2,
    ),
    "forks": ("import os\ndef attend():\n    os.fork()\n", "RG904", "it tried to fork", 3),
    "starts-a-program": (
        "import subprocess\ndef attend():\n    subprocess.run(['true'])\n",
        "RG904",
        "it tried to start another program",
        3,
    ),
    "starts-a-process": (
        "import multiprocessing as m\ndef attend():\n"
        "    p = m.get_context('spawn').Process(target=print)\n    p.start()\n",
        "RG904",
        "it tried to start another process",
        4,
    ),
    "uses-the-network": (
        "import urllib.request\n"
        "def attend():\n    urllib.request.urlopen('http://127.0.0.1:9/', timeout=5)\n",
        "RG904",
        "URLError",
        3,
    ),
    "recurses-without-end": (
        "def attend():\n    return attend()\n",
        "RG904",
        "RecursionError",
        2,
    ),
    "closes-everything": (
        "import os\ndef attend():\n    os.closerange(0, 256)\n    return 1\n",
        "RG904",
        "the process ended itself",
        1,
    ),
}


@pytest.mark.parametrize("case", MISBEHAVIOUR)
def test_misbehaviour_has_a_reason_with_its_line_and_the_next_target_is_answered(worker, case):
    source, code, said, line = MISBEHAVIOUR[case]
    process = worker(seconds=1.0 if "1 s" in said or "still" in said else 20.0)
    report = process.check(_target(source), None, {})
    finding = _only(report)
    assert (finding.code, finding.level) == (code, "error")
    assert said in finding.message
    assert finding.location.line == line
    assert report.not_checked == ("every relation",)
    assert process.check(_good(), None, {}).signature == "7"
    assert sorted(os.listdir()) == ["good.py", "subject.py"]


@pytest.mark.parametrize(
    "case", ["hangs-when-called", "crashes-the-interpreter", "quits-while-loading", "aborts"]
)
def test_without_forks_a_process_answers_once_and_the_next_one_goes_on(worker, case):
    source, code, said, line = MISBEHAVIOUR[case]
    process = worker(seconds=1.0 if "still" in said else 20.0, fork=False)
    finding = _only(process.check(_target(source), None, {}))
    assert (finding.code, finding.location.line) == (code, line)
    assert said in finding.message
    for number in (5, 7):
        assert process.check(_good(number), None, {}).signature == str(number)


def test_what_the_code_prints_is_no_output_of_ours(worker, capfd, either):
    source = (
        "import os, sys\nprint('loud')\n"
        "def attend():\n"
        "    print('x' * 9_000_000)\n    print('y' * 9_000_000, file=sys.stderr)\n"
        "    os.write(1, b'raw'); os.write(2, b'raw')\n    return 3\n"
    )
    assert worker(fork=either).check(_target(source), None, {}).signature == "3"
    assert capfd.readouterr() == ("", "")


def test_printing_without_end_is_stopped_in_time(worker):
    source = "def attend():\n    while True:\n        print('x' * 99)\n"
    finding = _only(worker(seconds=1.0).check(_target(source), None, {}))
    assert "still in `attend`" in finding.message
    assert finding.evidence.quote.endswith("x" * 9)
    assert len(finding.evidence.quote) <= 8192


def test_the_end_of_what_was_printed_goes_with_the_reason(worker):
    source = "print('loading weights from hub')\nraise RuntimeError('no weights')\n"
    finding = _only(worker().check(_target(source), None, {}))
    assert finding.evidence.quote == "loading weights from hub"


def test_what_outlives_the_code_is_ended_with_it(worker, tmp_path):
    thread = (
        "import threading, time\n"
        "def attend():\n    threading.Thread(target=time.sleep, args=(99,)).start()\n"
        "    return 3\n"
    )
    fork = (
        "import ctypes, time\n"
        "def attend():\n    if ctypes.CDLL(None).fork() == 0:\n        time.sleep(99)\n"
        "    return 5\n"
    )
    process = worker()
    assert process.check(_good(), None, {}).signature == "7"
    before = _processes_in(tmp_path)
    for source, answer in ((thread, "3"), (fork, "5")):
        assert process.check(_target(source), None, {}).signature == answer
        _until(lambda: _processes_in(tmp_path) == before)


def test_lines_that_the_code_writes_to_its_pipes_are_not_taken_for_answers(worker):
    source = (
        "import os\n"
        "def attend():\n"
        "    for number in range(3, 40):\n"
        "        try:\n            os.write(number, b'[1, 2]\\n{\\n')\n"
        "        except OSError:\n            pass\n"
        "    return 11\n"
    )
    assert worker().check(_target(source), None, {}).signature == "11"


def test_a_report_that_is_none_is_no_report(worker):
    source = (
        "import os\n"
        "def attend():\n"
        "    for number in range(3, 40):\n"
        '        try:\n            os.write(number, b\'\\n{"number": 1, "report": "{}"}\\n\')\n'
        "        except OSError:\n            pass\n"
        "    os.abort()\n"
    )
    finding = _only(worker().check(_target(source), None, {}))
    assert "cannot be read" in finding.message


WRITES = {
    "open": "open(name, 'a')",
    "pathlib": "pathlib.Path(name).write_text('x')",
    "bytes": "open(os.fsencode(name), 'wb')",
    "os.open": "os.open(name, os.O_RDWR)",
    "remove": "os.remove(name)",
    "rename": "os.rename(name, name + '2')",
    "rename-into-scratch": "os.rename(name, tempfile.mkdtemp() + '/x')",
    "mkdir": "os.makedirs(name + '.d')",
    "truncate": "os.truncate(name, 0)",
    "chmod": "os.chmod(name, 0)",
    "rmtree": "shutil.rmtree(os.path.dirname(name))",
    "symlink": "os.symlink(name, name + '2')",
    "through-a-link": "os.symlink(name, tempfile.gettempdir() + '/l'); "
    "open(tempfile.gettempdir() + '/l', 'w')",
    "sqlite": "sqlite3.connect(name + '.db')",
}


@pytest.mark.parametrize("way", WRITES)
def test_files_outside_the_temporary_folder_stay_as_they_are(worker, tmp_path, way):
    kept = tmp_path / "kept.txt"
    kept.write_text("precious")
    source = (
        "import os, pathlib, shutil, sqlite3, tempfile\n"
        f"name = {str(kept)!r}\n"
        f"def attend():\n    {WRITES[way]}\n"
    )
    before = kept.stat()
    finding = _only(worker().check(_target(source), None, {}))
    assert "which is refused" in finding.message
    assert finding.location.line == 4
    assert kept.read_text() == "precious"
    assert kept.stat().st_mode == before.st_mode
    assert sorted(os.listdir()) == ["kept.txt", "subject.py"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the Linux kernel's help")
def test_compiled_code_cannot_write_either(worker, tmp_path):
    kept = tmp_path / "kept.txt"
    kept.write_text("precious")
    source = (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "def attend():\n"
        f"    made = libc.open({str(kept)!r}.encode(), 0o1101, 0o600)\n"
        "    return made, ctypes.get_errno()\n"
    )
    if _landlock_version() < 3:
        pytest.skip("this kernel has no Landlock that knows truncation")
    assert worker().check(_target(source), None, {}).signature == "(-1, 13)"
    assert kept.read_text() == "precious"


def _landlock_version():
    import ctypes

    return ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)


def test_code_that_does_without_what_is_refused_is_checked_and_that_is_said(worker):
    source = (
        "def attend():\n"
        "    try:\n        open('cache.bin', 'wb')\n"
        "    except OSError:\n        return 13\n"
    )
    report = worker().check(_target(source), None, {})
    assert report.signature == "13"
    assert any("write the file cache.bin" in line for line in report.not_checked)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("open('made3.txt', 'w')", "it tried to write the file made3.txt, which is refused"),
        ("bytearray(2**33)", "within 512 MiB of memory"),
        ("np.ones(2**33)", "within 512 MiB of memory"),
    ],
)
def test_what_the_limits_did_is_not_blamed_on_the_code_as_a_bug(worker, line, said):
    source = f"import numpy as np\ndef attend():\n    {line}\n"
    finding = _only(worker(engine="check_engines:search").check(_target(source), None, {}))
    assert finding.code == "RG904"
    assert said in finding.message
    assert finding.location.line == 3


def test_the_temporary_folder_may_be_written_and_is_gone_afterwards(worker):
    source = (
        "import tempfile\n"
        "def attend():\n"
        "    with tempfile.NamedTemporaryFile('w', delete=False) as stream:\n"
        "        stream.write('x' * 99)\n"
        "    return stream.name\n"
    )
    name = eval(worker().check(_target(source), None, {}).signature)
    assert "regard-check-" in name
    assert not os.path.exists(name)


def test_neighbours_and_packages_are_importable_and_do_not_hide_ours(worker, tmp_path):
    package = tmp_path / "models" / "attention"
    package.mkdir(parents=True)
    for folder in (package.parent, package):
        (folder / "__init__.py").write_text("")
    (package / "json.py").write_text("raise RuntimeError('not the real json')\n")
    (package / "scale.py").write_text("FACTOR = 17\n")
    source = (
        "import json\nfrom .scale import FACTOR\nfrom models.attention import scale\n"
        "def attend():\n    return FACTOR + scale.FACTOR\n"
    )
    inside = _target(source, path="models/attention/decoder.py")
    assert worker().check(inside, None, {}).signature == "34"
    (tmp_path / "beside.py").write_text("SIZE = 19\n")
    (tmp_path / "dataclasses.py").write_text("raise RuntimeError('not the real one')\n")
    alone = _target("from beside import SIZE\ndef attend():\n    return SIZE\n")
    assert worker().check(alone, None, {}).signature == "19"


def test_torch_is_imported_once_and_only_where_it_is_used(worker):
    pytest.importorskip("torch")
    process = worker(seconds=60.0)
    plain = process.check(_good(), None, {})
    assert "torch" not in plain.versions["modules"]
    source = (
        "import torch\ndef attend():\n"
        "    return torch.get_num_threads(), torch.ones(3, 5).softmax(1).sum().item()\n"
    )
    report = process.check(_target(source), None, {})
    assert eval(report.signature) == (1, pytest.approx(3.0))
    assert "torch" in report.versions["modules"]


def test_memory_that_torch_does_not_get_is_a_reason(worker):
    pytest.importorskip("torch")
    source = "import torch\ndef attend():\n    return torch.ones(2**33)\n"
    finding = _only(worker(seconds=60.0).check(_target(source), None, {}))
    assert "within 512 MiB of memory" in finding.message
    assert finding.location.line == 3


def test_the_same_hash_seed_every_time(worker):
    target = _target("def attend():\n    return hash('T_enc')\n")
    assert len({worker().check(target, None, {}).signature for _ in range(2)}) == 1


def test_an_error_of_the_engine_is_said_to_be_ours(worker):
    finding = _only(worker(engine="check_engines:absent").check(_good(), None, {}))
    assert finding.code == "RG904"
    assert "failed inside regard" in finding.message
    assert "this is a defect of regard" in finding.also
    assert "AttributeError" in finding.evidence.quote


def test_a_process_that_cannot_start_is_a_reason(worker, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    finding = _only(worker().check(_good(), None, {}))
    assert finding.code == "RG901"
    assert "did not start" in finding.message


def test_when_the_parent_dies_everything_ends_and_leaves_nothing(tmp_path):
    code = (
        "import sys\nfrom regard.check.process import WorkerProcess\n"
        "from regard.check.settings import Limits\nfrom regard.check.target import Target\n"
        "process = WorkerProcess(Limits(60.0), engine='check_engines:call')\n"
        "process._start()\nprint(process._folder, flush=True)\n"
        "source = 'import os\\nos.write(2, b\"\")\\nwhile True: pass\\n'\n"
        "process.check(Target('x.py', 'attend', source), None, {})\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    folder = parent.stdout.readline().strip()
    _until(lambda: os.path.exists(os.path.join(folder, "1", "trace")))
    parent.kill()
    parent.communicate()
    _until(lambda: not os.path.exists(folder))
    _until(lambda: not _processes_in(tmp_path))


def _until(holds):
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _processes_in(folder):
    """Workers of this test's own folder, where /proc can tell."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            try:
                if os.readlink(f"/proc/{name}/cwd") == str(folder) and int(name) != os.getpid():
                    found.append(name)
            except OSError:
                pass
    return found


def test_closing_ends_a_target_that_is_running(worker, tmp_path):
    import threading

    process = worker(seconds=60.0)
    thread = threading.Thread(
        target=process.check, args=(_target("while True:\n    pass\n"), None, {})
    )
    thread.start()
    _until(
        lambda: process._folder and os.path.exists(os.path.join(process._folder, "1", "trace"))
    )
    process.close()
    thread.join(timeout=30)
    assert not thread.is_alive()
    _until(lambda: not _processes_in(tmp_path))
    assert signal.getsignal(signal.SIGINT) is not signal.SIG_IGN


def test_only_the_last_lines_of_much_that_was_printed_are_quoted(worker):
    source = "for i in range(997):\n    print('epoch', i)\n" + "print('y' * 997)\n1 / 0\n"
    finding = _only(worker().check(_target(source), None, {}))
    *epochs, last = finding.evidence.quote.split("\n")
    assert epochs == ["...", *(f"epoch {i}" for i in range(993, 997))]
    assert last == "y" * 200 + "..."
