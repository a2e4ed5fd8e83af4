"""Names of axes: told by size, carried by operations, followed by marks."""

import textwrap

import pytest

from regard.check.contract import Contract
from regard.check.naming import Names, carried, factors
from regard.check.probe import Probe
from regard.check.sizes import Sizes
from regard.check.subject import Instance, Loaded, load
from regard.check.trace import record

torch = pytest.importorskip("torch")


def axes_of(body, inputs, *, sizes=None, **declared):
    """Axes of the result of a function body, by names alone."""
    source = f"import torch\ndef f({', '.join(inputs)}):\n"
    source += textwrap.indent(textwrap.dedent(body).strip(), "    ")
    loaded = load(source, "/x/subject.py", "f")
    assert isinstance(loaded, Loaded), loaded
    contract = Contract.from_mapping({"inputs": inputs, **declared})
    chosen = Sizes(0).with_(**(sizes or {}))
    trace = record(Instance(loaded, contract, chosen), Probe(contract, chosen), chosen)
    assert trace.crash is None, trace.crash
    return trace.outputs[0].axes


X = {"x": "batch T d_model"}
QK = {"q": "batch T_dec d_h", "k": "batch T_enc d_h"}
HEADS = [{"name": "out", "axes": "batch heads T d_head"}]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("return q @ k.mT", ("batch", "T_dec", "T_enc")),
        ("return torch.einsum('bqd,bkd->bkq', q, k)", ("batch", "T_enc", "T_dec")),
        ("return (q @ k.transpose(1, 2)).sum(-1)", ("batch", "T_dec")),
        ("return k.permute(1, 2, 0)", ("T_enc", "d_h", "batch")),
        ("return q.unsqueeze(2) + k.unsqueeze(1)", ("batch", "T_dec", "T_enc", "d_h")),
        ("return torch.cat([q, k], dim=1)", ("batch", "T_dec+T_enc", "d_h")),
        ("return torch.cat([q, q], dim=2)", ("batch", "T_dec", "2*d_h")),
        ("return q[:, -1]", ("batch", "d_h")),
        ("return q[:, None, :1]", ("batch", "1", "1", "d_h")),
        ("return k.mean(1, keepdim=True).expand_as(q)", ("batch", "T_dec", "d_h")),
        ("return q.flatten(0, 1)", ("batch*T_dec", "d_h")),
        ("return q.movedim(0, 1)", ("T_dec", "batch", "d_h")),
        ("return k.permute(2, 1, 0).mT", ("d_h", "batch", "T_enc")),
    ],
)
def test_names_travel_with_the_axes(body, expected):
    assert axes_of(body, QK) == expected


def test_names_travel_where_the_sizes_coincide():
    same = {"T_dec": 7, "T_enc": 7}
    assert axes_of("return q @ k.mT", QK, sizes=same) == ("batch", "T_dec", "T_enc")
    assert axes_of("return (q @ k.mT).mT", QK, sizes=same) == ("batch", "T_enc", "T_dec")


def test_heads_are_named_when_they_are_split_folded_and_merged():
    b, t, h, d = (Sizes(0)[n] for n in ("batch", "T", "heads", "d_head"))
    split = f"h = x.view({b}, {t}, {h}, {d}).transpose(1, 2)\n"
    assert axes_of(split + "return h", X, returns=HEADS) == ("batch", "heads", "T", "d_head")
    folded = split + "return h.flatten(0, 1)"
    assert axes_of(folded, X, returns=HEADS) == ("batch*heads", "T", "d_head")
    merged = split + "return h.transpose(1, 2).flatten(2)"
    assert axes_of(merged, X, returns=HEADS) == ("batch", "T", "d_model")


def test_features_of_a_layer_are_named_without_lengths_where_it_is_not_built_with_one():
    sizes = {"T": 13, "d_model": 40, "heads": 4}
    body = "return torch.nn.functional.linear(x, torch.ones(26, 40))"
    assert axes_of(body, X, sizes=sizes) == ("batch", "T", "26")
    split = body + ".view(3, 13, 2, 13)"
    assert axes_of(split, X, sizes=sizes) == ("batch", "T", "2", "13")
    built = axes_of(body, X, sizes=sizes, init={"longest": "2*T"})
    assert built == ("batch", "T", "2*T")


def test_axes_that_a_view_joins_with_parts_of_features_are_told_by_what_lies_in_them():
    sizes = {"batch": 3, "T": 14, "d_model": 54}
    assert axes_of("return x.view(252, 9)", X, sizes=sizes) == ("batch*T*6", "9")
    assert axes_of("return x.view(3, 54, 14)", X, sizes=sizes) == ("batch", "d_model", "T")


def test_what_is_chosen_by_rank_is_named_by_its_number():
    sizes = {"T_enc": 7, "T_dec": 5, "heads": 4}
    body = "return (q @ k.mT).topk(4, dim=-1).values"
    found = axes_of(body, QK, sizes=sizes, values={}, init={"heads": "heads"})
    assert found == ("batch", "T_dec", "4")


def test_the_order_of_a_repeat_shows_in_the_name():
    inputs = {"x": "batch T d_h", "n": ""}
    values = {"n": "beam"}
    tiled = axes_of("return x.repeat(n, 1, 1)", inputs, values=values)
    each = axes_of("return x.repeat_interleave(n, dim=0)", inputs, values=values)
    assert (tiled[0], each[0]) == ("beam*batch", "batch*beam")


def test_the_simplest_name_of_a_size_is_told_and_nothing_is_made_up():
    names = Names(["batch", "T_enc", "d_h"], Sizes(0))
    batch, keys, d_h = (Sizes(0)[n] for n in ("batch", "T_enc", "d_h"))
    told = {1: "1", keys: "T_enc", d_h: "d_h", 2 * d_h: "2*d_h", batch * keys: "batch*T_enc"}
    assert {n: names.of(n) for n in told} == told
    assert names.of(99_991) == "?"
    assert names.size("2*d_h") == 2 * d_h
    assert names.size("?") is None


def test_marks_follow_an_axis_through_operations_and_leave_the_names_alone():
    source = "def f(q, k):\n    w = q @ k.mT\n    return w.transpose(1, 2).unsqueeze(0)"
    loaded = load("import torch\n" + source, "/x/subject.py", "f")
    contract, sizes = Contract.from_mapping({"inputs": QK}), Sizes(0)
    trace = record(Instance(loaded, contract, sizes), Probe(contract, sizes), sizes)
    *_, product, turned, last = trace.nodes
    assert carried([turned, last], product, ["#0", "#1", "#2"]) == ("?", "#0", "#2", "#1")
    assert product.axes == ("batch", "T_dec", "T_enc")


def test_factors_keep_the_order_in_memory_and_sums_stay_whole():
    assert factors("beam*batch") == ("beam", "batch")
    assert factors("T_mem+T_dec") == ("T_mem+T_dec",)
