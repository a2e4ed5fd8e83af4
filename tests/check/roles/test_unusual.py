"""Patterns and weights that the usual words do not describe are no statements."""

import textwrap

import pytest

from regard.check.roles import Guess, guess
from regard.check.subject import Loaded, load


def guessed(source: str, entry: str) -> Guess:
    loaded = load(textwrap.dedent(source), f"/nowhere/{entry.lower()}.py", entry)
    assert isinstance(loaded, Loaded), loaded
    return guess(loaded)


DILATED = """
    import torch

    def dilated_causal(q, k, v, step=2):
        '''Causal, every second key. q, k, v (batch, heads, time, dim)'''
        gap = torch.arange(q.shape[-2])[:, None] - torch.arange(q.shape[-2])
        keep = (gap >= 0) & (gap % step == 0)
        return (q @ k.mT).masked_fill(~keep, float("-inf")).softmax(-1) @ v
"""


def test_causal_beside_a_pattern_of_its_own_states_nothing():
    found = guessed(DILATED, "dilated_causal").contract
    assert found.causal is None
    assert "causal" in found.guessed


def test_causal_alone_is_a_statement():
    plain = DILATED.replace("dilated_causal", "attend").replace(", every second key", "")
    found = guessed(plain.replace(" & (gap % step == 0)", ""), "attend").contract
    assert found.causal == "top_left"
    assert "causal" not in found.guessed


@pytest.mark.parametrize("window", [2, 4])
def test_a_window_that_its_words_describe_has_the_size_of_its_default(window):
    source = f"""
        import torch

        def local_causal(q, k, v, window={window}):
            '''Causal; each query sees the last `window` keys. q, k, v: (batch, time, dim)'''
            at = torch.arange(q.shape[1])
            gap = at[:, None] - at
            keep = (gap >= 0) & (gap < window)
            return (q @ k.mT).masked_fill(~keep, float("-inf")).softmax(-1) @ v
    """
    found = guessed(source, "local_causal").contract
    assert (found.causal, found.window) == ("top_left", window)
    assert "causal" not in found.guessed


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("sigmoid_attention", "torch.sigmoid(s)"),
        ("topk_attention", "s.masked_fill(s < s.topk(2).values[..., -1:], -9e9).softmax(-1)"),
        ("hard_attention", "torch.nn.functional.one_hot(s.argmax(-1), s.shape[-1]).float()"),
    ],
)
def test_weights_that_are_no_softmax_over_all_keys_have_no_score(name, line):
    source = f"""
        import torch

        def {name}(q, k, v):
            '''q (batch, n, d), k (batch, m, d), v (batch, m, e)'''
            s = q @ k.mT / q.shape[-1] ** 0.5
            return {line} @ v
    """
    assert guessed(source, name).contract.score is None


def test_a_sort_with_running_sums_says_nothing_of_positions():
    source = """
        import torch

        def attend(q, k, v):
            '''q (batch, n, d), k (batch, m, d), v (batch, m, e)'''
            z = q @ k.mT / q.shape[-1] ** 0.5
            top = z.sort(-1, descending=True).values
            r = torch.arange(1, z.shape[-1] + 1)
            over = top.cumsum(-1)
            n = ((1 + r * top) > over).sum(-1, keepdim=True)
            return (z - (over.gather(-1, n - 1) - 1) / n).clamp(min=0) @ v
    """
    found = guessed(source, "attend").contract
    assert found.positions is False
    assert found.score is None


BRANCHES = """
    import torch
    from torch import nn

    class Attn(nn.Module):
        def __init__(self, method, width):
            super().__init__()
            self.method = method
            self.pair, self.one = nn.Linear(2 * width, width), nn.Linear(width, width)
            self.v = nn.Parameter(torch.rand(width))

        def forward(self, hidden, encoder_outputs):
            '''hidden (batch, width), encoder_outputs (batch, time, width)'''
            h = hidden[:, None].expand_as(encoder_outputs)
            if self.method == "general":
                s = (h * self.one(encoder_outputs)).sum(-1)
            elif self.method == "concat":
                s = torch.tanh(self.pair(torch.cat((h, encoder_outputs), -1))) @ self.v
            else:
                s = (h * encoder_outputs).sum(-1)
            return s.softmax(-1)

    class General(Attn):
        def __init__(self, width):
            super().__init__("general", width)
"""


def test_a_branch_that_a_subclass_does_not_take_states_nothing():
    assert guessed(BRANCHES, "General").contract.score == "general"


def test_ids_of_documents_group_the_tokens_and_join_queries_with_keys():
    source = """
        import torch

        def packed(q, k, v, doc_ids):
            '''Causal, packed documents. q, k, v: (batch, time, dim); doc_ids: (batch, time)'''
            t = q.shape[1]
            keep = (doc_ids[:, :, None] == doc_ids[:, None]) & torch.ones(t, t).tril().bool()
            return (q @ k.mT).masked_fill(~keep, float("-inf")).softmax(-1) @ v
    """
    found = guessed(source, "packed").contract
    assert found.inputs["q"].split()[:2] == found.inputs["k"].split()[:2] == ["batch", "T"]
    assert found.inputs["doc_ids"] == "batch T"
    assert "causal" in found.guessed


def test_one_shape_for_queries_keys_and_values_puts_them_on_one_axis_where_need_be():
    source = """
        import torch

        def attend(q, k, v):
            '''q, k, v: (batch, time, dim)'''
            near = torch.ones(q.shape[1], q.shape[1])
            return (q @ k.mT * near).softmax(-1) @ v
    """
    assert guessed(source, "attend").contract.inputs["k"].split()[:2] == ["batch", "T"]


def test_a_number_of_heads_makes_the_width_the_model_s():
    source = """
        import numpy as np

        def attention(Q, K, V, n_heads):
            '''Q (n, d), K (m, d), V (m, d), n_heads heads of d // n_heads.'''
            h = Q.shape[1] // n_heads
            q, k, v = (x.reshape(len(x), n_heads, h).swapaxes(0, 1) for x in (Q, K, V))
            s = q @ k.swapaxes(1, 2) / np.sqrt(h)
            w = np.exp(s - s.max(-1, keepdims=True))
            w = w / w.sum(-1, keepdims=True)
            return (w @ v).swapaxes(0, 1).reshape(Q.shape)
    """
    found = guessed(source, "attention").contract
    assert found.inputs["Q"] == "T_dec d_model"
    assert found.values == {"n_heads": "heads"}
    assert found.returns[0].axes == "T_dec d_model"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("raise SystemExit('no')", "SystemExit"),
        ("return attend(query, keys)", "RecursionError"),
        ("raise MemoryError('full')", "MemoryError"),
    ],
)
def test_what_no_axes_mend_is_named_with_its_line(line, kind):
    source = f"def attend(query, keys):\n    {line}\n"
    found = guessed(source, "attend")
    assert not found.contract.inputs
    assert found.crash is not None
    assert found.crash.kind == kind
    assert kind in found.assumptions[0]


def test_where_no_axes_are_found_the_last_try_is_told():
    source = "import numpy\n\ndef attend(query, keys):\n    return keys['a'] @ query\n"
    found = guessed(source, "attend")
    assert not found.contract.inputs
    assert "line 4" in found.assumptions[0]
