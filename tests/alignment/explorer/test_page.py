import base64
import hashlib
import html
import json
import re
import zlib

import numpy as np
import pytest

from regard.alignment.collection import Collection
from regard.alignment.counterfactual import ByPosition, Counterfactual
from regard.alignment.explorer import explorer
from regard.alignment.explorer.bundle import HERE, MODULES, script
from regard.alignment.record import Record
from regard.errors import InputError


def soft(*shape, seed=0):
    drawn = np.exp(np.random.default_rng(seed).normal(0, 1.5, shape))
    return drawn / drawn.sum(axis=-1, keepdims=True)


def record(layers=2, heads=3, steps=5, states=7, **options):
    options.setdefault("name", "s")
    target = [f"t{place}" for place in range(steps)]
    source = [f"s{place}" for place in range(states)]
    return Record(soft(layers, heads, steps, states), target, source, **options)


def data(page):
    found = re.search(
        r'<script type="application/json" id="alignments">(.*?)</script>', page, re.S
    )
    return json.loads(found[1])


def test_the_weights_in_the_page_are_the_ones_given_within_half_a_step():
    records = [record(), record(1, 5, 11, 3, name="t")]
    held = data(explorer(records))
    cells = np.frombuffer(zlib.decompress(base64.b64decode(held["packed"])), dtype=np.uint8)
    assert cells.size == sum(one.weights.size for one in records)
    for one, form in zip(records, held["records"], strict=True):
        found = cells[form["at"] : form["at"] + one.weights.size].reshape(one.weights.shape)
        assert np.abs(found / 255 - one.weights).max() <= 0.5 / 255 + 1e-12
        assert (form["source"], form["target"]) == (list(one.source), list(one.target))


def test_a_weight_above_1_by_rounding_does_not_wrap_around_to_0():
    held = data(explorer([Record([[1.004, 0.0]], ["a"], ["x", "y"])]))
    assert zlib.decompress(base64.b64decode(held["packed"])) == bytes([255, 0])


def test_measures_are_those_of_the_weights_before_rounding():
    one = record()
    measures = data(explorer([one]))["records"][0]["measures"]
    assert measures[1][2]["entropy"] == pytest.approx(one.entropy()[1, 2].mean(), abs=5e-5)
    monotonicity = one.alignment(layer=1, head=2).monotonicity()
    assert measures[1][2]["monotonicity"] == pytest.approx(monotonicity, abs=5e-5)


def test_a_head_that_looked_at_nothing_has_no_measures():
    measures = data(explorer([Record([[0.0, 0.0]], ["a"], ["x", "y"])]))["records"][0][
        "measures"
    ]
    assert measures == [[{"monotonicity": None, "entropy": None}]]


def test_the_page_names_no_address_and_its_policy_allows_its_own_script_alone():
    page = explorer([record()])
    policy = html.unescape(re.search(r'Policy" content="([^"]*)"', page)[1])
    code = re.findall(r"<script>(.*?)</script>", page, re.S)
    assert len(code) == 1
    digest = base64.b64encode(hashlib.sha256(code[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none'")
    outside = re.findall(r"""https?://[^"'\s]*|\b(?:src|href|action)=|@import|url\(""", page)
    # The one name of a language, which nothing fetches.
    assert outside == ["http://www.w3.org/2000/svg"]


def test_tokens_cannot_leave_the_data_they_stand_in():
    token = "</script><script>alert(1)</script><!--"
    one = Record([[1.0]], [token], [token], name=token, model=token)
    page = explorer([one], title="<b>&", made="<i>")
    assert "alert(1)" not in re.sub(r'id="alignments">.*?</script>', "", page, flags=re.S)
    assert data(page)["records"][0]["target"] == [token]
    assert "<title>&lt;b&gt;&amp;</title>" in page
    assert "<code>&lt;i&gt;</code>" in page


def test_the_sentences_fit_the_promised_size():
    # Draws of no structure are the worst to compress; real attention is smaller.
    records = [record(1, 8, 40, 40, name=str(place)) for place in range(50)]
    assert len(explorer(records).encode()) < 1_000_000


def test_the_sentences_fit_the_promised_size_with_all_counterfactuals_too():
    rng = np.random.default_rng(0)
    vocabulary = [f"word{place}" for place in range(500)]
    records = []
    for place in range(50):
        words = [str(word) for word in rng.choice(vocabulary, 40)]
        others = [
            # A fifth of the words change, to any word: far more than a trained model's do.
            [str(rng.choice(vocabulary)) if rng.random() < 0.2 else word for _ in range(40)]
            for word in words
        ]
        one = Counterfactual(words[::-1], rng.random(40), how="shuffled", unaltered=words)
        ablated = Counterfactual(
            words, rng.random(40), positions=ByPosition(others, rng.random((40, 40)))
        )
        changed = {"permute": one, "uniform": one, "ablate": ablated}
        weights = record(1, 8, 40, 40).weights
        records.append(Record(weights, words, words, name=str(place), counterfactuals=changed))
    assert len(explorer(records).encode()) < 1_000_000


def test_positions_travel_as_bytes_behind_the_weights():
    own = list("abcde")
    others = [[word] * 7 for word in own]
    others[1][2], others[1][3], others[4][6] = "x", "y", "x"
    moved = np.linspace(0, 1, 35).reshape(5, 7)
    positions = ByPosition(others, moved)
    changed = {"ablate": Counterfactual(own, [0.5] * 5, unaltered=own, positions=positions)}
    found = data(explorer([record(counterfactuals=changed), record(name="two")]))
    first, second = found["records"]
    places = first["counterfactuals"]["ablate"]["positions"]
    assert places["words"] == ["x", "y"]
    bytes_ = np.frombuffer(zlib.decompress(base64.b64decode(found["packed"])), np.uint8)
    assert places["at"] == first["at"] + record().weights.size
    effects = bytes_[places["at"] :][:35].reshape(5, 7)
    np.testing.assert_allclose(effects / 255, moved, atol=0.5 / 255)
    codes = bytes_[places["at"] + 35 :][:35].reshape(5, 7)
    assert (codes[1, 2], codes[1, 3], codes[4, 6], codes.sum()) == (1, 2, 1, 4)
    assert second["at"] == places["at"] + 70


def test_counterfactuals_travel_where_they_are_and_nowhere_else():
    changed = {"ablate": Counterfactual(list("abcde"), [0.1, 0.2, 0.3, 0.4, 2 / 3])}
    first, second = data(explorer([record(counterfactuals=changed), record(name="t")]))[
        "records"
    ]
    assert first["counterfactuals"]["ablate"]["target"] == list("abcde")
    assert first["counterfactuals"]["ablate"]["difference"][-1] == pytest.approx(
        2 / 3, abs=5e-4
    )
    assert second["counterfactuals"] == {}


def test_the_same_collection_gives_the_same_page():
    assert explorer([record()]) == explorer(Collection([record()]))


def test_too_many_weights_are_refused(monkeypatch):
    monkeypatch.setattr("regard.alignment.explorer.page._MOST", 209)
    with pytest.raises(InputError, match="at most 209 weights"):
        explorer([record()])


def test_every_module_is_in_the_bundle_after_what_it_imports():
    assert set(MODULES) == {path.name for path in HERE.glob("*.js")}
    for place, name in enumerate(MODULES):
        imported = re.findall(r'from "\./(\w+\.js)"', (HERE / name).read_text("utf-8"))
        assert set(imported) <= set(MODULES[:place]), name
    assert not re.search(r"^(?:import|export)\b", script(), re.MULTILINE)
