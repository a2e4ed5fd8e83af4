import subprocess
import sys

import pytest

from regard.errors import InputError
from regard.seq2seq.only_writer import only_writer

pytest.importorskip("fcntl", reason="no file locks on this system")

HOLD = """
import sys, time
from pathlib import Path
from regard.seq2seq.only_writer import only_writer
with only_writer(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(120)
"""


def test_a_second_run_is_refused_until_the_first_one_ends(tmp_path):
    first, second = only_writer(tmp_path), only_writer(tmp_path)
    first.__enter__()
    with pytest.raises(InputError, match="another run is writing to this directory"):
        second.__enter__()
    first.__exit__(None, None, None)
    with only_writer(tmp_path):
        pass
    assert not list(tmp_path.iterdir())


def test_a_killed_run_holds_nothing(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(InputError):
            only_writer(tmp_path).__enter__()
        other.kill()
        other.wait()
    with only_writer(tmp_path):
        pass
