"""Sizes lead back to their names: no sum or product that code forms coincides."""

import itertools

import pytest

from regard.check.sizes import SETS, Sizes, names_in
from regard.errors import InputError

# What attention code forms of its axes, beside the plain sizes.
FORMED = (
    *("2*d_h", "2*d_s", "d_h+d_s", "d_s+d_emb", "d_h+d_emb", "heads*d_head", "kv_heads*d_head"),
    *("3*heads*d_head", "heads*d_v", "batch*heads", "T_mem+T_dec", "2*T_enc", "2*T", "batch*T"),
    *("batch*T_enc", "batch*T_dec", "height*width", "d_h//2"),
)
PLAIN = (
    *(
        "batch",
        "heads",
        "T_enc",
        "T_dec",
        "T",
        "T_mem",
        "d_head",
        "d_s",
        "d_h",
        "d_attn",
        "d_v",
    ),
    *("d_emb", "d_k", "d_ff", "vocab", "n_features", "n_classes"),
)


@pytest.mark.parametrize("which", range(len(SETS)))
def test_plain_sizes_and_what_code_forms_of_them_all_differ(which: int) -> None:
    sizes = Sizes(which)
    values = {name: sizes.value(name) for name in (*PLAIN, *FORMED)}
    same = [(a, b) for a, b in itertools.combinations(values, 2) if values[a] == values[b]]
    assert same == []


@pytest.mark.parametrize("which", range(len(SETS)))
def test_heads_share_their_key_heads_evenly(which: int) -> None:
    sizes = Sizes(which)
    assert sizes["heads"] % sizes["kv_heads"] == 0


def test_a_free_name_gets_a_size_of_its_own() -> None:
    sizes = Sizes()
    first, second = sizes["n_regions"], sizes["n_tags"]
    assert first != second
    assert sizes["n_regions"] == first
    assert {first, second}.isdisjoint(SETS[0].values())


def test_d_model_follows_heads_and_d_head() -> None:
    assert Sizes(0, {"heads": 3, "d_head": 7})["d_model"] == 21


def test_a_coincidence_is_made_on_purpose_and_keeps_the_rest() -> None:
    sizes = Sizes()
    free = sizes["n_regions"]
    other = sizes.with_(T_dec=sizes["T_enc"])
    assert other["T_dec"] == other["T_enc"] == sizes["T_enc"]
    assert other["n_regions"] == free


@pytest.mark.parametrize(
    ("text", "value"),
    [("2*d_h", 76), ("d_h+d_s", 66), ("'concat'", "concat"), (0.5, 0.5), ("d_h//2", 19)],
)
def test_expressions_are_evaluated(text: object, value: object) -> None:
    assert Sizes().value(text) == value


@pytest.mark.parametrize(
    "text",
    ["d_h +", "().__class__", "open('x')", "d_h[0]", "1/0", "'a' * 3 + 2", "d_h if 1 else 2"],
)
def test_what_is_no_expression_of_sizes_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="no expression of sizes"):
        Sizes().value(text)


def test_names_are_found_in_order() -> None:
    assert names_in("heads*d_head+sqrt(T)") == ("heads", "d_head", "T")
    assert names_in("'concat'") == ()
