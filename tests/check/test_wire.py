import json

import numpy as np
import pytest

from regard.check.finding import (
    Edit,
    Evidence,
    Finding,
    Fix,
    Location,
    Measurement,
    Proof,
    Report,
    Step,
    Tensor,
)
from regard.check.wire import dump, load

FULL = Report(
    target="decoder.py:attend",
    findings=(
        Finding(
            code="RG301",
            name="softmax-axis",
            level="error",
            target="decoder.py:attend",
            message="`weights` sums to 1 over T_dec\nand not over T_enc",
            location=Location("decoder.py", 10, 15, 10, 43),
            evidence=Evidence(
                "weights-sum-to-one",
                "sum = 1",
                (Measurement("sum", "0.74", "must be 1"),),
                {"batch": 2, "T_enc": 11},
                seed=5,
                quote="é\u2028\ud800",
            ),
            tensor=Tensor("weights", ("batch", "T_dec"), (2, 3), ("batch", "T_enc")),
            trace=(Step(8, "scores", ("batch", "T_dec")),),
            fixes=(
                Fix("proven", (Edit(10, 37, 10, 42, "dim=-1"),), proof=Proof(6, 12, 12, 3)),
                Fix("sketch", ()),
            ),
        ),
        Finding(
            code="RG205",
            name="all-masked-row",
            level="warning",
            target="x",
            message="",
            location=Location("x", 1),
            evidence=Evidence("", ""),
            suppressed="rows are never empty",
        ),
    ),
    checked=("a", "b"),
    sizes=({"batch": 2}, {"batch": 3}),
    seconds=1.25,
    weights_before=((0.5, 0.25), (float("inf"), 1.0)),
    relations=({"name": "a", "before": "fails", "after": "holds"},),
    versions={"torch": "2"},
    test="def test(): ...",
)


def test_a_report_comes_back_as_it_was_sent_and_fits_in_a_line():
    text = dump(FULL)
    assert "\n" not in text
    assert load(Report, text) == FULL


def test_scalars_of_array_libraries_become_plain_numbers():
    torch = pytest.importorskip("torch")
    report = Report(
        "x", sizes=({"batch": np.int64(3)}, {"T": torch.tensor(5)}), seconds=np.float32(0.5)
    )
    assert load(Report, dump(report)) == Report(
        "x", sizes=({"batch": 3}, {"T": 5}), seconds=0.5
    )


@pytest.mark.parametrize(
    "change",
    [
        {"findings": 3},
        {"findings": [{"code": "RG301"}]},
        {"target": None},
        {"nonsense": 1},
        {"sizes": [[]]},
        {"seconds": "long"},
        {"checked": "all"},
    ],
)
def test_what_is_no_report_is_refused(change):
    data = json.loads(dump(Report("x")))
    with pytest.raises(ValueError, match=r"\w"):
        load(Report, json.dumps({**data, **change}))


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", "nonsense"])
def test_what_is_no_record_is_refused(text):
    with pytest.raises(ValueError, match=r"\w"):
        load(Report, text)
