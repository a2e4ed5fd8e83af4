import sys
from contextlib import closing

import pytest

from regard.errors import InputError
from regard.seq2seq.board import Board
from regard.seq2seq.events import Evaluation, Progress


def _event(step: int) -> Progress:
    look = Evaluation(step, 0.25, 0.5, (("exact_match", 0.5),)) if step % 7 == 0 else None
    return Progress(step, 100, 1 / step, 0.01, look, None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_reads_the_course_and_nothing_of_a_sitting_that_was_killed(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with closing(Board(tmp_path)) as board:
        for step in range(1, 26):
            board.show(_event(step))
    with closing(Board(tmp_path, step=17)) as board:
        for step in range(18, 41):
            board.show(_event(step))
    found = accumulator.EventAccumulator(str(tmp_path)).Reload()
    assert [e.step for e in found.Scalars("loss")] == [7, 10, 14, 20, 21, 28, 30, 35, 40]
    looks = found.Scalars("held_out/exact_match")
    assert [(e.step, e.value) for e in looks] == [(n, 0.5) for n in (7, 14, 21, 28, 35)]


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(InputError, match=r"regard\[tensorboard\]"):
        Board(tmp_path)
