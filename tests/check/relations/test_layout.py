"""Named axes: results in one order, arguments changed at one named place."""

import numpy as np
import pytest

from regard.check.contract import Contract
from regard.check.relations.base import Bench, Case
from regard.check.relations.layout import keep_of, layout
from regard.check.relations.many import answers
from regard.check.subject import Loaded, load
from relation_subjects import SUBJECTS


def bench_of(name: str) -> Bench:
    subject = SUBJECTS[name]
    loaded = load(subject.source, f"/subjects/{name}.py", subject.entry)
    assert isinstance(loaded, Loaded)
    return Case(loaded, Contract.from_mapping(subject.contract)).bench(0)


@pytest.mark.parametrize(
    ("kind", "value", "wanted"),
    [
        ("keep", [[True, False]], [[True, False]]),
        ("drop", [[True, False]], [[False, True]]),
        ("keep_uint8", np.array([[1, 0]], np.uint8), [[True, False]]),
        ("drop_float01", [[1.0, 0.0]], [[False, True]]),
        ("additive", [[0.0, -1e9]], [[True, False]]),
        ("lengths", [1, 2], [[True, False], [True, True]]),
        ("token_ids_pad0", [[5, 0]], [[True, False]]),
        ("zero_padded", [[[0.0, 1.0], [0.0, 0.0]]], [[True, False]]),
    ],
)
def test_every_kind_of_mask_reads_as_true_may_attend(
    kind: str, value: object, wanted: list[list[bool]]
) -> None:
    assert keep_of(kind, value, 2).tolist() == wanted


def test_weights_come_as_batch_heads_query_key_wherever_the_keys_lie() -> None:
    bench = bench_of("heads")
    weights = layout(bench).alignment(bench.out)
    assert weights is not None
    assert weights.shape == (3, 4, 13, 13)
    np.testing.assert_allclose(weights.sum(-1), 1.0, atol=1e-5)


def test_the_pattern_of_a_causal_window_is_a_band() -> None:
    bench = bench_of("heads")
    here = layout(bench)
    here.contract = here.contract.with_(window=2)
    seen = here.pattern()
    assert seen[5].nonzero()[0].tolist() == [4, 5]
    assert seen[0].nonzero()[0].tolist() == [0]


def test_content_changes_at_the_named_place_alone() -> None:
    bench = bench_of("decoder")
    here = layout(bench)
    before, after = bench.probe.args["words"], here.noised("words", T_dec=2, batch=1)
    changed = np.argwhere((before != after).any(axis=-1))
    assert changed.tolist() == [[1, 2]]


def test_a_key_position_is_changed_in_keys_and_values_and_not_in_queries() -> None:
    here = layout(bench_of("cross"))
    changes = here.at_key(3)
    assert sorted(changes) == ["keys", "values"]
    same = (changes["keys"] == here.probe.args["keys"]).all(axis=-1).all(axis=0)
    assert same.tolist() == [True, True, True, False, True, True, True]


def test_variants_in_one_batch_answer_as_they_do_one_by_one() -> None:
    bench = bench_of("decoder")
    here = layout(bench)
    variants = [{"words": here.noised("words", T_dec=t)} for t in range(4)]
    for changes, answer in zip(variants, answers(here, variants), strict=True):
        out = bench.ok(**changes)
        assert out is not None
        assert answer is not None
        wanted = here.context(out, "outputs")
        np.testing.assert_allclose(answer.get("outputs"), wanted, atol=1e-6)


def test_a_lone_state_is_content_and_a_learned_vector_is_not() -> None:
    here = layout(bench_of("lists"))
    assert here.content == ["query", "keys"]
    assert layout(bench_of("pool")).content == ["rows"]
