import csv
from contextlib import closing

import pytest

from regard.errors import InputError
from regard.seq2seq.events import Evaluation, Progress
from regard.seq2seq.log import CsvLog

SCORES = ("exact_match", "symbol_error")


def _event(step: int) -> Progress:
    look = None
    if step % 7 == 0:
        rates = (("exact_match", 0.5), ("symbol_error", 1 / step))
        look = Evaluation(step, 0.25, 0.5, rates)
    return Progress(step, 100, 1 / step, 0.01, look, None, step / 100, 0.1 * step)


def _write(path, first: int, last: int, step: int = 0) -> None:
    with closing(CsvLog(path, scores=SCORES, step=step)) as log:
        for number in range(first, last + 1):
            log.show(_event(number))


def _rows(path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_there_is_a_row_every_ten_steps_and_one_for_each_look(tmp_path):
    path = tmp_path / "log.csv"
    _write(path, 1, 31)
    rows = _rows(path)
    assert [int(row["step"]) for row in rows] == [7, 10, 14, 20, 21, 28, 30]
    assert float(rows[0]["loss"]) == 1 / 7
    assert [row["mean_loss"] for row in rows] == ["0.25", "", "0.25", "", "0.25", "0.25", ""]
    assert float(rows[2]["symbol_error"]) == 1 / 14
    assert rows[1]["symbol_error"] == ""
    assert rows[3]["seconds"] == "2.0"


@pytest.mark.parametrize("torn", ["", "2", "28,0.03", '"28'])
def test_a_run_that_goes_on_has_no_row_twice_and_none_that_is_torn(tmp_path, torn):
    whole, path = tmp_path / "whole.csv", tmp_path / "log.csv"
    _write(whole, 1, 45)
    _write(path, 1, 26)
    with path.open("a") as stream:
        stream.write(torn)
    _write(path, 18, 45, step=17)
    assert path.read_bytes() == whole.read_bytes()


def test_a_run_that_begins_anew_keeps_no_row(tmp_path):
    path = tmp_path / "log.csv"
    _write(path, 1, 31)
    _write(path, 1, 7)
    assert [row["step"] for row in _rows(path)] == ["7"]


def test_a_log_of_other_columns_is_begun_anew(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n7,1.0\n")
    _write(path, 18, 21, step=17)
    assert [row["step"] for row in _rows(path)] == ["20", "21"]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(InputError, match=r"log\.csv"):
        CsvLog(tmp_path / "nothing" / "log.csv", scores=SCORES)
