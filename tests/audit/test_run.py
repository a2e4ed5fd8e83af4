"""An audit from beginning to end: verdicts, stops, budgets, going on, JSON."""

import json

import numpy as np
import pytest

from regard.audit import run as module
from regard.audit.gates import decide
from regard.audit.inputs import Input
from regard.audit.measures import MEASURES
from regard.audit.page import page
from regard.audit.planted import PlantedCase
from regard.audit.protocol import FunctionCase
from regard.audit.run import audit
from regard.audit.text import text
from regard.audit.verdict import Audit, ClaimError
from regard.audit.wording import judge
from regard.errors import InputError
from weak_map import weak_map

_QUICK = ["erase_input", "gold_mass"]


def _shown(found):
    """The text without its last line, which counts seconds: numbers to three places."""
    return text(found).rpartition("\n")[0]


@pytest.fixture(scope="module")
def granted(honest_model, planted):
    names = [measure.name for measure in MEASURES if not measure.trains]
    return audit(honest_model, planted, tests=names)


@pytest.fixture(scope="module")
def refused(deceived_model, planted):
    return audit(deceived_model, planted, tests=_QUICK)


def test_an_honest_model_is_granted_all_levels(granted):
    assert granted.verdict.headline == "SUPPORTED AT L2 AND L3"
    assert [claim.outcome for claim in granted.verdict.claims] == ["granted"] * 3
    granted.assert_claim("L3")


def test_a_deceived_model_is_refused_in_the_words_of_the_design(refused):
    assert refused.verdict.status == "refused"
    said = refused.verdict.text
    assert said.startswith("REFUSED (n=60): top-attended token no better than random (")
    assert "A leave-one-out token exists that matters" in said
    assert "the map hides it." in said
    with pytest.raises(ClaimError, match="L2"):
        refused.assert_claim("L2")


@pytest.mark.parametrize("word", ["because", "the reason", "reasoning"])
def test_no_verdict_speaks_of_reasons(granted, refused, word):
    for found in (granted, refused):
        assert word not in text(found).lower()


def test_every_test_that_the_case_allows_ran(granted):
    assert {table.test for table in granted.tables} == {
        measure.name for measure in MEASURES if not measure.trains and measure.name != "rollout"
    }
    assert granted.verdict.not_tested == (
        ("rollout", "the case has no layers of self-attention"),
    )


def test_json_comes_back_as_it_was_and_holds_the_numbers_of_the_text(granted):
    form = json.loads(json.dumps(granted.to_dict(), allow_nan=False))
    assert text(Audit.from_dict(form)) == text(granted)
    table = next(t for t in granted.tables if t.test == "erase_input")
    assert f"{table.rows[0].estimate.value:.3f}" in text(granted)


def test_the_worst_inputs_are_those_with_the_widest_gap(refused):
    gaps = [one.largest_effect - one.top_weight_effect for one in refused.worst]
    assert len(gaps) == 10
    assert gaps == sorted(gaps, reverse=True)
    token = max(refused.worst[0].tokens, key=lambda t: t.effect)
    assert token.gold
    assert token.effect == refused.worst[0].largest_effect


def test_weights_caught_wrongly_stop_the_audit_before_anything_is_measured(
    honest_model, planted
):
    case = FunctionCase(
        lambda texts: np.tile([0.25, 0.75], (len(texts), 1)),
        lambda texts: [np.full(len(t), 0.5) for t in texts],
    )
    found = audit(case, planted)
    assert found.verdict.status == "stopped"
    assert found.verdict.headline == "STOPPED AT G0"
    assert [claim.outcome for claim in found.verdict.claims] == ["undecided"] * 3
    assert not found.tables


def test_where_the_controls_do_not_come_apart_nothing_is_said_of_the_model(
    honest_model, planted, monkeypatch
):
    bad = module.control_gate(0)
    failed = type(bad)("G1", bad.rule, "failed", "F 0.10 against 0.09")
    monkeypatch.setattr(module, "control_gate", lambda seed: failed)
    assert audit(honest_model, planted, tests=_QUICK).verdict.headline == "STOPPED AT G1"


def test_a_weak_map_on_few_inputs_is_undecided_and_says_how_many_more(honest_model, planted):
    found = audit(weak_map(honest_model), planted[:25], tests=["erase_input"])
    assert found.verdict.status == "undecided"
    assert "more inputs would decide it" in found.verdict.text


def test_a_budget_that_is_over_leaves_the_gates_and_says_what_was_not_tested(
    honest_model, planted
):
    found = audit(honest_model, planted, budget=1e-9)
    assert found.n == 20
    assert found.verdict.outcome("L1") == "granted"
    late = dict(found.verdict.not_tested)
    assert late["permute"] == "the time was up after 0 of 60 inputs"


def test_an_audit_that_goes_on_gives_what_one_at_once_gives(honest_model, planted, tmp_path):
    kept = tmp_path / "audit.part"
    audit(honest_model, planted, tests=_QUICK, budget=1e-9, resume=kept)
    assert kept.exists()
    asked = []

    class Counting(PlantedCase):
        def predict(self, batch):
            asked.append(len(batch))
            return super().predict(batch)

    case = Counting(honest_model.params, name=honest_model.name)
    later = audit(case, planted, tests=_QUICK, resume=kept)
    whole = audit(honest_model, planted, tests=_QUICK)
    assert _shown(later) == _shown(whole)
    assert later.asked < whole.asked
    assert not kept.exists()


def test_what_was_kept_of_another_model_is_not_used(
    honest_model, deceived_model, planted, tmp_path
):
    kept = tmp_path / "audit.part"
    audit(honest_model, planted, tests=_QUICK, budget=1e-9, resume=kept)
    same_name = PlantedCase(deceived_model.params, name=honest_model.name)
    assert audit(same_name, planted, tests=_QUICK, resume=kept).verdict.status == "refused"


def test_the_order_of_chunks_changes_nothing(honest_model, planted, monkeypatch):
    whole = audit(honest_model, planted, tests=_QUICK)
    small = [type(m)(**{**vars(m), "step": 7}) for m in MEASURES if m.name in _QUICK]
    monkeypatch.setattr(module, "chosen", lambda names: small)
    assert _shown(audit(honest_model, planted, tests=_QUICK)) == _shown(whole)


def test_too_few_inputs_and_unknown_tests_are_refused(honest_model, planted):
    with pytest.raises(InputError, match="too few inputs"):
        audit(honest_model, planted[:19])
    with pytest.raises(InputError, match="too few inputs"):
        audit(honest_model, [Input(("w1",))] * 50)
    with pytest.raises(InputError, match="magic"):
        audit(honest_model, planted, tests=["magic"])
    with pytest.raises(InputError, match="this is no case"):
        audit(object(), planted)


def test_repeats_count_once_and_are_told(honest_model, planted):
    once = audit(honest_model, planted, tests=_QUICK)
    often = audit(honest_model, [*planted, *planted[:23] * 7], tests=_QUICK)
    assert often.n == once.n == 60
    assert often.left_out == (("repeated", 161),)
    assert often.to_dict()["left_out"] == [["repeated", 161]]
    assert "n 60 (161 repeated)" in text(often)
    assert [gate.estimate for gate in often.verdict.gates] == [
        gate.estimate for gate in once.verdict.gates
    ]


def test_one_sentence_many_times_is_too_few_inputs(honest_model, planted):
    with pytest.raises(InputError, match="too few inputs") as caught:
        audit(honest_model, planted[:1] * 400)
    assert "400 of 400, 399 of them repeats" in str(caught.value)


def test_many_steps_of_few_texts_are_too_few_inputs(honest_model, planted):
    class Steps(PlantedCase):
        reads_before = True

    case = Steps(honest_model.params, name="steps")
    befores = [("a",) * k for k in range(9)]
    steps = [Input(one.tokens, before=before) for one in planted[:19] for before in befores]
    with pytest.raises(InputError, match="too few inputs") as caught:
        audit(case, steps)
    assert "171 of 171, steps of 19 texts" in str(caught.value)
    more = [Input(one.tokens, before=before) for one in planted for before in befores]
    found = audit(case, more, tests=_QUICK)
    once = audit(honest_model, planted, tests=_QUICK)
    rows = [next(t for t in f.tables if t.test == "erase_input").rows[0] for f in (found, once)]
    wide, narrow = (row.estimate.high - row.estimate.low for row in rows)
    assert found.n == 500
    assert wide > 0.8 * narrow  # nine times the steps, not a third of the width


def test_of_repeats_the_one_with_marked_tokens_is_kept(honest_model, planted):
    bare = [Input(one.tokens) for one in planted]
    found = audit(honest_model, [*bare, *planted], tests=_QUICK)
    assert found.left_out == (("repeated", 60),)
    assert any(table.test == "gold_mass" for table in found.tables)


def test_steps_of_pairs_are_refused_by_a_case_that_does_not_read_them(planted):
    case = FunctionCase(lambda texts: np.tile([0.5, 0.5], (len(texts), 1)), lambda texts: [])
    steps = [Input(one.tokens, before=("a",)) for one in planted]
    with pytest.raises(InputError, match="the case does not read them"):
        audit(case, steps)


@pytest.mark.filterwarnings("error")
def test_a_model_whose_output_never_changes_is_refused_in_those_words(planted):
    case = FunctionCase(
        lambda texts: np.tile([0.25, 0.75], (len(texts), 1)),
        lambda texts: [np.full(len(text), 1 / len(text)) for text in texts],
    )
    found = audit(case, planted)
    assert found.verdict.status == "refused"
    assert [claim.outcome for claim in found.verdict.claims] == [
        "granted",
        "refused",
        "refused",
    ]
    assert "the output never changes: none of the erasures moves p(pred)" in found.verdict.text
    gates = {gate.name: gate for gate in found.verdict.gates}
    assert gates["G2.moves"].outcome == "failed"
    assert "there is no F" in gates["G3.share.delete"].said
    for shown in (text(found), page(found)):
        assert "nan" not in shown.lower()


def test_an_f_above_one_is_no_share_of_anything():
    noise = np.random.default_rng(0).normal(0, 0.01, 60)
    columns = {
        f"{way}.{name}.{amount}": value + noise
        for way in ("delete", "resample")
        for amount in ("top1", "aopc")
        for name, value in (("attention", 0.5), ("random", 0.0), ("leave-one-out", 0.4))
    }
    columns["tokens.weight"] = [[0.7, 0.2, 0.1]] * 60
    columns["tokens.drop"] = [[0.5, 0.0, 0.0]] * 60
    gates = decide(columns, None)
    verdict = judge(gates, columns, 60)
    f = 0.5 / 0.4
    assert f"attention finds more than any other ranking tried (F {f:.2f})" in verdict.text
    assert "captures" not in verdict.text
    said = next(gate.said for gate in gates if gate.name == "G3.share.delete")
    assert said.endswith("best other ranking leave-one-out, which attention exceeds")
    assert "share" not in said


def test_a_refusal_names_the_way_of_erasing_that_failed_and_its_figures():
    columns = {}
    figures = {
        "delete": (0.9, 0.4, 0.95),
        "mask": (0.02, 0.03, 0.7),
        "resample": (0.0, 0.02, 0.8),
    }
    noise = np.random.default_rng(0).normal(0, 0.01, 60)
    for way, (attention, random, best) in figures.items():
        for amount in ("top1", "aopc"):
            columns[f"{way}.attention.{amount}"] = attention + noise
            columns[f"{way}.random.{amount}"] = random + noise[::-1]
            columns[f"{way}.leave-one-out.{amount}"] = best + 0 * noise
    columns["tokens.weight"] = [[0.6, 0.3, 0.1]] * 60
    columns["tokens.drop"] = [[0.0, 0.7, 0.0]] * 60
    verdict = judge(decide(columns, None), columns, 60)
    assert verdict.status == "refused"
    found = f"{0.02 + noise.mean():.3f} vs {0.03 + noise.mean():.3f} by mask"
    assert f"top-attended token no better than random ({found}, p=" in verdict.text
    assert "A leave-one-out token exists that matters (0.700)" in verdict.text


def test_a_file_that_is_no_unfinished_audit_is_left_alone(tmp_path):
    from regard.audit.store import Store

    path = tmp_path / "thesis.txt"
    for content in ("my thesis", '{"key": "k", "columns": {}}', "[]"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(InputError, match="no unfinished audit"):
            Store(path, "k")
        assert path.read_text(encoding="utf-8") == content
    path.unlink()
    Store(path, "k").add("test", {"column": [1.0]})
    assert Store(path, "k").done("test") == 1
    assert Store(path, "other").done("test") == 0


def test_functions_of_the_package_are_not_hidden_by_modules_of_their_name():
    import regard.audit
    import regard.audit.from_regard
    import regard.audit.from_torch
    import regard.audit.page
    import regard.audit.text

    for name in regard.audit.__all__:
        assert callable(getattr(regard.audit, name)), name
