import json
import subprocess
import sys

import numpy as np
import pytest

import regard as rg
from regard.errors import ConventionError, ShapeError
from regard.testing import ContractBroken, Subject, clauses, contract


def uniform(query, key, value, mask=None, need_weights=True):
    weights = np.full((len(query), query.shape[1], key.shape[1]), 1 / key.shape[1])
    return weights @ value, weights if need_weights else None


def test_importing_it_loads_no_torch():
    code = "import regard.testing, sys; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_there_are_eleven_clauses_and_each_states_itself():
    assert [clause.number for clause in clauses()] == list(range(1, 12))
    assert all(len(clause.statement) > 40 for clause in clauses())


def test_a_report_is_the_same_twice_and_another_with_another_seed():
    subject = Subject(call=uniform, d_s=5, d_h=5, d_v=7, oracle="dot")
    once, again = contract(subject), contract(subject)
    assert once == again
    assert once != contract(subject, seed=1)


def test_a_broken_clause_raises_only_when_asked_to():
    subject = Subject(call=uniform, d_s=5, d_h=5, d_v=7)
    report = contract(subject, clauses=(1, 2))
    assert [verdict.outcome for verdict in report.verdicts] == ["held", "broken"]
    assert not report.ok
    with pytest.raises(ContractBroken, match="weights of head 0"):
        report.raise_if_broken()
    with pytest.raises(ContractBroken):
        contract(subject, clauses=(2,), raising=True)
    with pytest.raises(AssertionError, match="clause 2"):
        clauses()[1].check(subject)


def test_a_report_without_a_broken_clause_returns_itself():
    report = contract(Subject.of(rg.attend, score="dot"), clauses=(1, 7))
    assert report.raise_if_broken() is report


def test_json_holds_every_verdict_and_the_versions():
    subject = Subject(call=uniform, d_s=5, d_h=5, d_v=7)
    content = json.loads(contract(subject, clauses=(1, 2, 9)).to_json())
    assert [each["outcome"] for each in content["verdicts"]] == [
        "held",
        "broken",
        "not applicable",
    ]
    assert content["verdicts"][1]["counterexample"]["expected"] == "0 exactly"
    assert content["versions"]["numpy"] == np.__version__
    assert content["ok"] is False


def test_a_notebook_shows_a_table():
    shown = contract(Subject(call=uniform, d_s=5, d_h=5, d_v=7), clauses=(1, 2))._repr_html_()
    assert shown.count("<tr>") == 2


def test_a_subject_that_raises_breaks_the_clause_with_its_own_words():
    def no_masks(query, key, value, mask=None, need_weights=True):
        if mask is not None:
            raise RuntimeError("no masks today")
        return uniform(query, key, value, need_weights=need_weights)

    verdict = clauses()[1](Subject(call=no_masks, d_s=5, d_h=5, d_v=7))
    assert verdict.outcome == "broken"
    assert (
        verdict.evidence == "the call itself: RuntimeError: no masks today; expected a result"
    )


def test_a_call_with_another_signature_is_a_mistake_and_not_a_broken_clause():
    subject = Subject(call=lambda query: query, d_s=5, d_h=5, d_v=7)
    with pytest.raises(ConventionError) as caught:
        contract(subject)
    assert str(caught.value).splitlines()[:2] == [
        "<lambda> cannot be called as its Subject says",
        "  expected  call(query, key, value, need_weights=True) on numpy to return",
    ]


def test_axes_that_are_not_the_declared_ones_are_a_mistake():
    def turned(query, key, value, mask=None, need_weights=True):
        context, weights = uniform(query, key, value)
        return context, weights.swapaxes(1, 2)

    with pytest.raises(ShapeError, match="the weights of turned have other axes"):
        contract(Subject(call=turned, d_s=5, d_h=5, d_v=7))


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"mask": "keep"}, "mask"),
        ({"layout": "T d batch"}, "layout"),
        ({"library": "cupy"}, "cupy"),
        ({"oracle": "cosine"}, "oracle"),
        ({"dtypes": ("bfloat16",)}, "dtypes"),
        ({"library": "lists"}, "layout"),
        ({"self_attention": True}, "d_s"),
    ],
)
def test_a_subject_that_contradicts_itself_is_refused_by_name(options, name):
    with pytest.raises(ConventionError, match=name):
        Subject(**{"call": uniform, "d_s": 5, "d_h": 7, **options})


def test_a_size_that_is_none_is_refused_by_name():
    with pytest.raises(ShapeError, match="`d_h` is not a size"):
        Subject(call=uniform, d_s=5, d_h=0)


def test_what_is_not_known_is_told_how_to_describe_itself():
    with pytest.raises(ConventionError, match=r"Subject\(call=..., d_s=..., d_h=...\)"):
        Subject.of(uniform)


def test_there_is_no_twelfth_clause():
    with pytest.raises(ConventionError, match="1 to 11"):
        contract(Subject.of(rg.dot_attention), clauses=(12,))


def test_pytorchs_own_module_is_known_in_either_layout():
    torch = pytest.importorskip("torch")
    for batch_first in (False, True):
        theirs = torch.nn.MultiheadAttention(6, 2, batch_first=batch_first)
        report = contract(Subject.of(theirs), clauses=(1, 6, 7, 8, 9, 10))
        assert report.ok, str(report)
