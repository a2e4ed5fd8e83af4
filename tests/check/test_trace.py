"""The recording: every tensor by the user's line, softmax sites, and nothing changed."""

import textwrap

import numpy as np
import pytest

from regard.check.contract import Contract
from regard.check.probe import Probe
from regard.check.sizes import Sizes
from regard.check.subject import Crash, Instance, Loaded, Outcome, load
from regard.check.trace import Trace, record

torch = pytest.importorskip("torch")

QKV = {"q": "batch T_dec d_h", "k": "batch T_enc d_h", "v": "batch T_enc d_v"}
ROWS = {"q": "T_dec d_h", "k": "T_enc d_h", "v": "T_enc d_v"}


def instance_of(source, inputs, entry="attend", **declared):
    loaded = load(textwrap.dedent(source).lstrip(), "/x/subject.py", entry)
    assert isinstance(loaded, Loaded), loaded
    contract = Contract.from_mapping({"inputs": inputs, **declared})
    sizes = Sizes(0, contract.sizes)
    return Instance(loaded, contract, sizes), Probe(contract, sizes), sizes


def traced(source, inputs, entry="attend", **declared):
    instance, probe, sizes = instance_of(source, inputs, entry, **declared)
    trace = record(instance, probe, sizes)
    assert isinstance(trace, Trace)
    base = instance.call(probe.args)
    if isinstance(base, Outcome) and instance.library != "lists":
        for seen, node in zip(base.outputs, trace.outputs, strict=True):
            np.testing.assert_allclose(node.value, seen, rtol=1e-5, atol=1e-6)
    return trace


def named(trace, name):
    return [n for n in trace.nodes if n.name == name]


FOUR_SOFTMAXES = {
    "by name": ("import torch", "torch.softmax(scores, dim=-1)"),
    "by a layer": ("import torch", "torch.nn.Softmax(dim=2)(scores)"),
    "by hand": (
        "import torch",
        "(e := torch.exp(scores - scores.amax(-1, keepdim=True))) / e.sum(-1, keepdim=True)",
    ),
    "by logsumexp": (
        "import torch",
        "torch.exp(scores - torch.logsumexp(scores, dim=-1, keepdim=True))",
    ),
    "by a reciprocal": (
        "import torch",
        "(e := scores.exp()) * (1.0 / e.sum(-1, keepdim=True))",
    ),
    "in NumPy": (
        "import numpy as np",
        "(e := np.exp(scores - scores.max(-1, keepdims=True))) / e.sum(-1, keepdims=True)",
    ),
}


@pytest.mark.parametrize("form", FOUR_SOFTMAXES)
def test_a_softmax_is_found_by_name_and_by_its_effect(form):
    header, softmax = FOUR_SOFTMAXES[form]
    trace = traced(
        f"""
        {header}
        def attend(q, k, v):
            scores = q @ k.mT / 4.0
            weights = {softmax}
            return weights @ v, weights
        """,
        QKV,
    )
    (site,) = trace.sites
    assert (site.axis, site.span.line) == (2, 4)
    assert site.scores.name == "scores"
    assert site.weights.axes == ("batch", "T_dec", "T_enc")
    assert (site.query.name, site.key.name, site.value.name) == ("q", "k", "v")
    assert site.slope == pytest.approx(0.25, rel=1e-4)
    assert site.context.axes == ("batch", "T_dec", "d_v")


def test_a_renormalisation_of_weights_is_no_second_softmax():
    trace = traced(
        """
        def attend(q, k, v, keep):
            weights = (q @ k.mT).softmax(-1) * keep[:, None]
            weights = weights / weights.sum(-1, keepdim=True)
            return weights @ v
        import torch
        """,
        {**QKV, "keep": "batch T_enc"},
        kinds={"keep": "keep_float01"},
    )
    (site,) = trace.sites
    assert [n.op for n in site.post_ops] == ["mul", "div"]


def test_a_sum_over_everything_is_a_softmax_over_no_axis():
    trace = traced(
        """
        import numpy as np
        def attend(q, k, v):
            e = np.exp(q @ k.T)
            return (e / e.sum()) @ v
        """,
        ROWS,
    )
    assert [s.axis for s in trace.sites] == [None]


def test_a_softmax_without_axis_has_the_one_pytorch_picks():
    trace = traced(
        """
        import torch
        def attend(q, k, v):
            return torch.nn.functional.softmax(q @ k.mT) @ v
        """,
        QKV,
    )
    assert [s.axis for s in trace.sites] == [0]


def test_the_fused_call_shows_its_scores_scale_and_mask():
    trace = traced(
        """
        import torch.nn.functional as F
        def attend(q, k, v, keep):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=keep[:, None], scale=0.5)
        """,
        {**QKV, "keep": "batch T_enc"},
        kinds={"keep": "keep"},
    )
    (site,) = trace.sites
    assert site.fused
    assert site.slope == 0.5
    assert [n.op for n in site.pre_ops] == ["mul", "masked_fill"]
    keep = trace.inputs["keep"].value
    assert (site.weights.value[~np.broadcast_to(keep[:, None], site.weights.shape)] == 0).all()
    weights, v = site.weights.value, site.value.value
    np.testing.assert_allclose(trace.outputs[0].value, weights @ v, atol=1e-5)


LAYER = """
import torch.nn as nn
class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.mix = nn.MultiheadAttention(width, heads, batch_first=True)
    def forward(self, x, memory, pad):
        return self.mix(x, memory, memory, key_padding_mask=pad)
"""


def test_a_multi_head_layer_is_one_site_with_its_heads():
    trace = traced(
        LAYER,
        {"x": "batch T_dec d_model", "memory": "batch T_enc d_model", "pad": "batch T_enc"},
        "Layer",
        init={"width": "d_model", "heads": "heads"},
        kinds={"pad": "drop"},
    )
    (site,) = trace.sites
    assert site.weights.axes == ("batch", "heads", "T_dec", "T_enc")
    assert site.slope == pytest.approx(10**-0.5)
    np.testing.assert_allclose(
        trace.outputs[1].value, site.weights.value.mean(1), rtol=1e-4, atol=1e-6
    )
    assert site.query.sources >= {"input:x"}
    assert site.key.sources >= {"input:memory"}


def one_hot(index, weights):
    hot = np.zeros_like(weights)
    hot[..., 0] = 1.0
    return hot


@pytest.mark.parametrize(
    "body",
    [
        "weights = (q @ k.mT).softmax(-1)",
        "weights = (q @ k.mT).log_softmax(-1).exp()",
        "e = (q @ k.mT).exp(); weights = e / e.sum(-1, keepdim=True)",
    ],
)
def test_other_weights_can_be_put_in_at_a_site(body):
    instance, probe, sizes = instance_of(
        f"""
        import torch
        def attend(q, k, v):
            {body}
            return weights @ v
        """,
        QKV,
    )
    trace = record(instance, probe, sizes, replace=one_hot)
    first = np.repeat(probe.args["v"][:, :1], sizes["T_dec"], axis=1)
    np.testing.assert_allclose(trace.outputs[0].value, first, rtol=1e-5)


def test_other_weights_reach_the_output_through_fused_calls_and_numpy():
    fused = """
        import torch.nn.functional as F
        def attend(q, k, v):
            return F.scaled_dot_product_attention(q, k, v)
        """
    by_hand = """
        import numpy as np
        def attend(q, k, v):
            e = np.exp(q @ np.swapaxes(k, 1, 2))
            return e / e.sum(-1, keepdims=True) @ v
        """
    for source in (fused, by_hand):
        instance, probe, sizes = instance_of(source, QKV)
        trace = record(instance, probe, sizes, replace=one_hot)
        first = np.repeat(probe.args["v"][:, :1], sizes["T_dec"], axis=1)
        np.testing.assert_allclose(trace.outputs[0].value, first, rtol=1e-5)


def test_other_weights_reach_the_output_of_a_multi_head_layer():
    instance, probe, sizes = instance_of(
        LAYER,
        {"x": "batch T_dec d_model", "memory": "batch T_enc d_model", "pad": "batch T_enc"},
        "Layer",
        init={"width": "d_model", "heads": "heads"},
        kinds={"pad": "drop"},
    )
    trace = record(instance, probe, sizes, replace=one_hot)
    shown, weights = (o.value for o in trace.outputs)
    assert (weights[..., 0] == 1).all()
    np.testing.assert_allclose(shown, np.broadcast_to(shown[:, :1], shown.shape), atol=1e-5)


def test_a_node_knows_its_line_columns_and_the_calls_above_it():
    trace = traced(
        """
        import torch
        def score(a, b):
            é = "ü"; return torch.matmul(a, b)
        def attend(q, k, v):
            weights = score(q, k.mT).softmax(-1)
            return weights @ v
        """,
        QKV,
    )
    product = trace.sites[0].product
    assert product.lines == (5, 3)
    assert (product.span.column, product.span.end_column) == (21, 39)
    assert trace.sites[0].weights.name == "weights"


def test_names_come_from_the_users_variables_also_when_they_unpack():
    trace = traced(
        """
        import torch
        def attend(x):
            q, k, v = (t.transpose(1, 2) for t in x.chunk(3, dim=1))
            return q + 1.0, k + 1.0, v + 1.0
        """,
        {"x": "batch 3*T d_h"},
    )
    assert [n.op for name in "qkv" for n in named(trace, name)] == ["transpose"] * 3


def test_writing_into_a_view_is_seen_in_what_it_views():
    source = """
        import {0} as np
        def attend(q, k, v):
            bias = np.zeros(({1}))
            row = bias[0]
            row[1:] = -1e9
            e = np.exp(q @ k.T + bias)
            return e / e.sum(1)[:, None] @ v
        """
    for library, shape in (("numpy", "len(q), len(k)"), ("torch", "q.shape[0], len(k)")):
        trace = traced(source.format(library, shape), ROWS)
        bias = named(trace, "bias")[-1]
        assert (bias.value[0, 1:] == -1e9).all()
        assert (bias.value[1:] == 0).all()
        assert bias.line == 5
        assert trace.sites[0].slope == pytest.approx(1.0, rel=1e-4)


def test_sources_tell_inputs_and_parameters_apart():
    trace = traced(
        """
        import torch
        class Score(torch.nn.Module):
            def __init__(self, size):
                super().__init__()
                self.W = torch.nn.Linear(size, size)
            def forward(self, q, k, v):
                scores = self.W(q) @ k.mT
                return scores.softmax(-1) @ v
        """,
        QKV,
        "Score",
        init={"size": "d_h"},
    )
    wanted = {"input:q", "input:k", "param:W.weight", "param:W.bias"}
    assert trace.sites[0].scores.sources == wanted


def test_a_crash_keeps_what_came_before_and_names_the_operation():
    for library in ("numpy", "torch"):
        trace = traced(
            f"""
            import {library}
            def attend(q, k, v):
                scores = q @ k.mT
                return scores @ q
            """,
            QKV,
        )
        assert isinstance(trace.crash, Crash)
        assert trace.failed.op == "matmul"
        assert [n.axes for n in trace.failed.inputs] == [
            ("batch", "T_dec", "T_enc"),
            ("batch", "T_dec", "d_h"),
        ]
        assert trace.failed.span.line == 4


def test_an_exception_that_the_user_catches_is_no_crash():
    trace = traced(
        """
        import torch
        def attend(q, k, v):
            try:
                scores = q @ k
            except RuntimeError:
                scores = q @ k.mT
            return scores.softmax(-1) @ v
        """,
        QKV,
    )
    assert trace.crash is None
    assert trace.failed is None


def test_plain_lists_run_and_leave_no_nodes():
    trace = traced(
        """
        import math
        def attend(q, k, v):
            scores = [sum(a * b for a, b in zip(q, row)) for row in k]
            e = [math.exp(s) for s in scores]
            return [sum(w * r[i] for w, r in zip(e, v)) / sum(e) for i in range(len(v[0]))]
        """,
        {"q": "d_h", "k": "T_enc d_h", "v": "T_enc d_v"},
    )
    assert (trace.nodes, trace.crash) == ([], None)


def test_dropout_before_and_after_the_softmax_is_told_apart():
    trace = traced(
        """
        import torch
        class Dropped(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.drop = torch.nn.Dropout(0.4)
            def forward(self, q, k, v):
                weights = self.drop(q @ k.mT).softmax(-1)
                return self.drop(weights) @ v
        """,
        QKV,
        "Dropped",
        mode="train",
    )
    (site,) = trace.sites
    assert [n.op for n in site.pre_ops] == ["dropout"]
    assert [n.op for n in site.post_ops] == ["dropout"]


def test_an_additive_score_has_no_query_but_the_product_with_its_vector():
    trace = traced(
        """
        import numpy as np
        def attend(state, memory, W, U, v):
            scores = np.tanh((state @ W)[:, None] + memory @ U) @ v
            e = np.exp(scores - scores.max(1, keepdims=True))
            weights = e / e.sum(1, keepdims=True)
            return (weights[..., None] * memory).sum(1), weights
        """,
        {
            **{"state": "batch d_s", "memory": "batch T_enc d_h"},
            **{"W": "d_s d_attn", "U": "d_h d_attn", "v": "d_attn"},
        },
    )
    (site,) = trace.sites
    assert (site.query, site.key) == (None, None)
    assert site.product.inputs[0].op == "tanh"
    assert site.value.name == "memory"
    assert site.context.op == "sum"


def test_an_axis_that_nobody_wrote_and_that_is_stretched_is_listed():
    trace = traced(
        """
        import torch
        def attend(q, k, v):
            weights = (q @ k.mT).softmax(-1)
            return weights / weights.sum(dim=(0, 1)), q + q[:, :1], (weights @ v) * 2.0
        """,
        QKV,
    )
    assert [(n.op, n.line) for n in trace.broadcasts] == [("div", 4)]


def test_sizes_that_the_code_reads_are_noted_with_their_axis():
    trace = traced(
        """
        import torch
        def attend(q, k, v):
            n = q.size(1)
            return q @ k.mT @ v / n
        """,
        QKV,
    )
    steps = Sizes(0)["T_dec"]
    assert [(r.node.name, r.axis, r.size, r.line) for r in trace.reads] == [("q", 1, steps, 3)]


def test_one_softmax_a_step_gives_one_site_a_step():
    trace = traced(
        """
        import torch
        class Steps(torch.nn.Module):
            def __init__(self, emb, size):
                super().__init__()
                self.cell = torch.nn.GRUCell(emb, size)
            def forward(self, words, state, memory):
                out = []
                for word in words.unbind(1):
                    weights = torch.einsum("bd,btd->bt", state, memory).softmax(-1)
                    state = self.cell(word, state)
                    out.append(weights)
                return torch.stack(out, 1)
        """,
        {"words": "batch T_dec d_emb", "state": "batch d_h", "memory": "batch T_enc d_h"},
        "Steps",
        init={"emb": "d_emb", "size": "d_h"},
    )
    later = Sizes(0)["T_dec"] - 1
    assert [s.query.op for s in trace.sites] == ["input"] + ["gru_cell"] * later


def test_a_softmax_that_is_written_into_its_scores_is_a_site_and_takes_other_weights():
    source = """
        import numpy as np
        def attend(q, k, v):
            s = np.matmul(q, np.swapaxes(k, 1, 2))
            s -= s.max(axis=-1, keepdims=True)
            np.exp(s, out=s)
            s /= s.sum(axis=-1, keepdims=True)
            return s @ v
        """
    (site,) = traced(source, QKV).sites
    assert (site.axis, site.span.line, site.query.name) == (2, 6, "q")
    instance, probe, sizes = instance_of(source, QKV)
    trace = record(instance, probe, sizes, replace=one_hot)
    first = np.repeat(probe.args["v"][:, :1], sizes["T_dec"], axis=1)
    np.testing.assert_allclose(trace.outputs[0].value, first, rtol=1e-5)


def test_a_softmax_of_scipy_is_followed_though_it_drops_subclasses():
    pytest.importorskip("scipy")
    trace = traced(
        """
        import numpy as np
        from scipy.special import softmax
        def attend(q, k, v):
            return softmax(q @ np.swapaxes(k, 1, 2), axis=-1) @ v
        """,
        QKV,
    )
    (site,) = trace.sites
    assert (site.axis, site.value.name) == (2, "v")
