"""Written tests fail on the code as it is and pass on the repaired code, in a real pytest."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from regard.check.contract import Contract
from regard.check.finding import Evidence, Finding, Location
from regard.check.regress import write_test
from regard.check.subject import Loaded, load

pytest.importorskip("torch")

FINDING = Finding(
    "RG301",
    "softmax-axis",
    "error",
    "layer.py:attend",
    'the softmax runs over T_dec; it is the "wrong" axis',
    Location("layer.py", 6),
    Evidence("weights-sum-to-one", "sum over T_enc = 1"),
)

DOT = """
    import torch

    def attend(q, k, keep):
        scores = q @ k.transpose(1, 2)
        scores = scores.masked_fill(~keep[:, None], float("-inf"))
        weights = scores.softmax(-1)
        return weights @ k, weights
    """
FORM = {
    "inputs": {"q": "batch T_dec d_h", "k": "batch T_enc d_h", "keep": "batch T_enc"},
    "kinds": {"keep": "keep"},
    "returns": [
        {"name": "context", "axes": "batch T_dec d_h"},
        {"name": "weights", "axes": "batch T_dec T_enc"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
    "score": "dot",
}
GATE = """
    import numpy as np

    def scale(q, k):
        scores = np.einsum("bqd,bkd->bqk", q, k) / q.shape[-1] ** 0.5
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)
    """
GATE_FORM = {
    "inputs": {"q": "batch T_dec d_h", "k": "batch T_enc d_h"},
    "returns": [{"name": "weights", "axes": "batch T_dec T_enc"}],
    "weights": {"output": "weights", "sums_to_one_over": -1},
    "score": "scaled_dot",
}


def loaded(text: str, entry: str) -> Loaded:
    result = load(textwrap.dedent(text), "layer.py", entry)
    assert isinstance(result, Loaded), result
    return result


def outcome_in_pytest(folder: Path, text: str, test: str) -> int:
    (folder / "layer.py").write_text(textwrap.dedent(text))
    (folder / "test_layer.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_layer.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode


@pytest.mark.parametrize(
    ("text", "form", "entry", "old", "new", "sentence"),
    [
        (DOT, FORM, "attend", "softmax(-1)", "softmax(1)", "weights_sum_to_one_over_T_enc"),
        (DOT, FORM, "attend", "~keep[:, None]", "keep[:, None]", "padding_of_T_enc"),
        (DOT, FORM, "attend", "weights @ k,", "weights.roll(1, 0) @ k,", "on_the_others"),
        (GATE, GATE_FORM, "scale", " ** 0.5", "", "softmax_of_q_times_k"),
    ],
)
def test_it_fails_before_and_passes_after(
    tmp_path: Path,
    text: str,
    form: dict[str, object],
    entry: str,
    old: str,
    new: str,
    sentence: str,
) -> None:
    broken = text.replace(old, new)
    assert broken != text
    test = write_test(
        loaded(broken, entry),
        Contract.from_mapping(form),
        FINDING,
        textwrap.dedent(text),
        date="2026-01-02",
    )
    assert test is not None
    assert test.passes_after
    assert sentence in test.text
    assert "RG301" in test.text
    assert "2026-01-02" in test.text
    assert "regard" not in test.text.replace("regard_", "")
    assert outcome_in_pytest(tmp_path, broken, test.text) == 1
    assert outcome_in_pytest(tmp_path, text, test.text) == 0


def test_shapes_and_row_sums_are_asserted_whatever_the_bug() -> None:
    broken = DOT.replace("~keep[:, None]", "keep[:, None]")
    test = write_test(
        loaded(broken, "attend"), Contract.from_mapping(FORM), FINDING, textwrap.dedent(DOT)
    )
    assert test is not None
    assert "def test_every_result_has_its_shape" in test.text
    assert "def test_weights_sum_to_one_over_T_enc" in test.text
    assert "== (3, 5, 7)" in test.text


def test_without_a_bug_there_is_no_test_to_write() -> None:
    right = loaded(DOT, "attend")
    test = write_test(right, Contract.from_mapping(FORM), FINDING, right.source)
    assert test is None


def test_a_bug_that_no_plain_statement_shows_is_pinned_by_numbers_of_the_repair() -> None:
    text = """
    import torch

    def attend(q, k):
        joint = torch.tanh(q + k)
        return (joint.sum(-1) * 2).softmax(-1)
    """
    form = {
        "inputs": {"q": "batch 1 d_h", "k": "batch T_enc d_h"},
        "returns": [{"name": "weights", "axes": "batch T_enc"}],
        "weights": {"output": "weights"},
    }
    broken = text.replace(" * 2", "")
    test = write_test(
        loaded(broken, "attend"), Contract.from_mapping(form), FINDING, textwrap.dedent(text)
    )
    assert test is not None
    assert "test_the_results_are_those_of_the_repaired_code" in test.text
