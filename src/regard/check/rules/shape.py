"""RG1: axes that meet, vanish, stretch or trade places."""

from regard.check.rules.base import Rule, cross, pair, within

__all__ = ["RULES"]


def _axes_do_not_meet() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = query @ keys.transpose(1, 2)
    weights = torch.softmax(scores, dim=-1)
    return ...HERE..., weights
''',
        wrong="weights.transpose(1, 2) @ keys",
        right="weights @ keys",
        show="""
try:
    print(tuple(attend(torch.ones(1, 2, 5), torch.ones(1, 3, 5))[0].shape))
except RuntimeError as error:
    print(type(error).__name__)
""",
        prints=("RuntimeError", "(1, 2, 5)"),
        contract=cross(),
    )
    return Rule(
        code="RG101",
        name="axes-do-not-meet",
        level="error",
        title="An operation joins two axes that are not the same, and raises",
        equation="A (..., i, j) @ B (..., k, l) is defined for j = k alone",
        what="One operand has its axes in another order, or is another tensor, than the line "
        "needs. The operation joins an axis of one name with an axis of another, and the "
        "array library stops with an error about sizes.",
        hides="The same line runs wherever the two sizes happen to be equal: a square test "
        "case (T_dec = T_enc, d_s = d_h) lets it through and returns a wrong result.",
        recipe="Find the operand whose axes are not those that the line needs and give it the "
        "right ones: drop or add one transpose, swap two operands, or take the other tensor. "
        "Do not reshape: that silences the error and keeps the mistake.",
        not_a_bug="Never, where the declared axes are the intended ones. If they are not, "
        "declare the real ones.",
        bad=bad,
        good=good,
    )


def _hidden_transpose() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(x, W_q, W_k, W_v):
    """x (batch, T, d_model), every W (d_model, d_model)"""
    q, k, v = x @ W_q, x @ W_k, x @ W_v
    scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return ...HERE..., weights
''',
        wrong="weights.transpose(1, 2) @ v",
        right="weights @ v",
        show="""
one = torch.ones(1, 1)
context, _ = attend(torch.tensor([[[2.0], [0.0]]]), one, one, one)
print([round(value, 3) for value in context.flatten().tolist()])
""",
        prints=("[1.964, 0.036]", "[1.964, 1.0]"),
        contract=within(
            {
                "x": "batch T d_model",
                "W_q": "d_model d_model",
                "W_k": "d_model d_model",
                "W_v": "d_model d_model",
            }
        ),
    )
    return Rule(
        code="RG102",
        name="hidden-transpose",
        level="error",
        title="Two axes trade places, and the code runs because their sizes are equal",
        equation="context[t] = sum_i weights[t, i] value[i], and not sum_t weights[t, i] "
        "value[t]",
        what="A square matrix is used the wrong way round: rows are read where columns "
        "belong. Nothing raises, since both axes have one size, and the result has the right "
        "shape.",
        hides="In self-attention queries and keys have one length, and many weight matrices "
        "are square, so no size can tell the two axes apart.",
        recipe="Take the transpose away (or add the missing one) so that the sum runs over "
        "the axis that it should. Test with lengths and widths that all differ.",
        not_a_bug="A matrix that is stored (out, in), as torch.nn.Linear does, needs its "
        "transpose. What counts is which axis meets which.",
        bad=bad,
        good=good,
    )


def _silent_broadcast() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys, bias):
    """query (batch, d_h), keys (batch, T_enc, d_h), bias (T_enc): one number a position"""
    scores = torch.bmm(keys, query[:, :, None])
    weights = torch.softmax(...HERE..., dim=1)
    context = torch.einsum("bti,btd->bd", weights, keys)
    return context, weights[..., 0]
''',
        wrong="scores + bias",
        right="scores + bias[:, None]",
        show="""
keys = torch.tensor([[[1.0], [3.0]]])
print(attend(torch.zeros(1, 1), keys, torch.zeros(2))[0].item())
""",
        prints=("4.0", "2.0"),
        contract={
            "inputs": {"query": "batch d_h", "keys": "batch T_enc d_h", "bias": "T_enc"},
            "kinds": {"bias": "bias"},
            "returns": [
                {"name": "context", "axes": "batch d_h"},
                {"name": "weights", "axes": "batch T_enc"},
            ],
            "weights": {"output": "weights", "sums_to_one_over": -1},
            "score": "dot",
            "positions": True,
        },
    )
    return Rule(
        code="RG103",
        name="silent-broadcast",
        level="error",
        title="An axis of size 1, or one that is not there, is stretched unasked",
        equation="A (..., n, 1) + b (n) has axes (..., n, n): one more than either has",
        what="Two tensors whose axes differ are added, multiplied or assigned. The library "
        "aligns them from the right and stretches what has size 1, so numbers of one position "
        "meet those of all the others.",
        hides="Broadcasting never raises where a size is 1, and a later sum brings the "
        "surplus axis down again. In the example the context is twice as large as any mean of "
        "the keys.",
        recipe="Give the smaller tensor its missing axis in the right place (`bias[:, "
        "None]`), or take the axis of size 1 away before the two meet.",
        not_a_bug="A mask, a bias or a scale that is meant for all queries, heads or examples "
        "is stretched along these axes on purpose.",
        bad=bad,
        good=good,
    )


def _wrong_output_axes() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = query @ keys.transpose(1, 2)
    weights = torch.softmax(scores, dim=-1)
    return weights @ keys, ...HERE...
''',
        wrong="weights.transpose(1, 2)",
        right="weights",
        show="""
print(tuple(attend(torch.ones(1, 2, 5), torch.ones(1, 3, 5))[1].shape))
""",
        prints=("(1, 3, 2)", "(1, 2, 3)"),
        contract=cross(),
    )
    return Rule(
        code="RG104",
        name="wrong-output-axes",
        level="error",
        title="What is returned has other axes than were declared",
        equation="axes(weights) = (batch, T_dec, T_enc); axes(context) = (batch, T_dec, d_v)",
        what="The weights or the context come back with their axes in another order, or with "
        "one too many or too few. Whoever plots or reuses them reads columns for rows.",
        hides="A caller that only multiplies by the weights of one step, or a test case with "
        "T_dec = T_enc, never sees the difference.",
        recipe="Return the tensor in the order that is declared: drop the transpose, or add "
        "the one that is missing just before the return.",
        not_a_bug="Time-first code returns (T_dec, batch, d_v) on purpose: declare these axes.",
        bad=bad,
        good=good,
    )


def _vanished_axis() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys):
    """query (batch, d_h), keys (batch, T_enc, d_h): one decoder step"""
    scores = torch.bmm(keys, query[:, :, None])...HERE...
    weights = torch.softmax(scores, dim=-1)
    return (weights[..., None] * keys).sum(dim=-2), weights
''',
        wrong=".squeeze()",
        right=".squeeze(-1)",
        show="""
print(tuple(attend(torch.ones(1, 5), torch.ones(1, 3, 5))[1].shape))
""",
        prints=("(3,)", "(1, 3)"),
        contract={
            "inputs": {"query": "batch d_h", "keys": "batch T_enc d_h"},
            "returns": [
                {"name": "context", "axes": "batch d_h"},
                {"name": "weights", "axes": "batch T_enc"},
            ],
            "weights": {"output": "weights", "sums_to_one_over": -1},
            "score": "dot",
        },
    )
    return Rule(
        code="RG105",
        name="vanished-axis",
        level="error",
        title="An axis disappears when its size is 1",
        equation="the number of axes of every tensor is the same for batch = 1 and batch = n",
        what="A squeeze without an axis, or another operation that drops every axis of size "
        "1, also drops the batch or the time axis when there is one example or one step.",
        hides="Training runs with large batches and long texts. The first batch of one comes "
        "when the model is used.",
        recipe="Name the axis: `.squeeze(-1)`. Or index it away: `[..., 0]`.",
        not_a_bug="An axis of size 1 that is always there may be dropped by name.",
        bad=bad,
        good=good,
    )


def _batch_time_swapped() -> Rule:
    bad, good = pair(
        '''
from torch import nn


class SelfAttention(nn.Module):
    """x (batch, T, d_model)"""

    def __init__(self, d_model, heads):
        super().__init__()
        self.inner = nn.MultiheadAttention(d_model, heads...HERE...)

    def forward(self, x):
        return self.inner(x, x, x)[0]
''',
        wrong="",
        right=", batch_first=True",
        entry="SelfAttention",
        show="""
import torch

torch.manual_seed(0)
layer = SelfAttention(4, 2).eval()
x = torch.randn(2, 3, 4)
print(torch.allclose(layer(x[:1]), layer(x)[:1], atol=1e-5))
""",
        prints=("False", "True"),
        contract={
            "init": {"d_model": "d_model", "heads": "heads"},
            "inputs": {"x": "batch T d_model"},
            "returns": [{"name": "context", "axes": "batch T d_model"}],
            "score": "scaled_dot",
        },
    )
    return Rule(
        code="RG106",
        name="batch-time-swapped",
        level="warning",
        title="The code is consistent only if batch and time are exchanged",
        equation="f(x)[b] = f(x[b]): it fails as declared, and holds with the two axes "
        "exchanged",
        what="Every relation between examples fails and every relation between positions "
        "holds the other way round: the code reads the first axis as time. Each position "
        "attends to the same position of the other examples.",
        hides="Both layouts have the same number of axes, so every shape is right. The loss "
        "falls, since an example can still see itself.",
        recipe="Tell the layer the layout (`batch_first=True`), or transpose on the way in "
        "and on the way out.",
        not_a_bug="The code is time-first and the declaration is wrong: declare `T batch d`.",
        bad=bad,
        good=good,
        references=("PyTorch, torch.nn.MultiheadAttention, parameter batch_first",),
    )


RULES = (
    _axes_do_not_meet(),
    _hidden_transpose(),
    _silent_broadcast(),
    _wrong_output_axes(),
    _vanished_axis(),
    _batch_time_swapped(),
)
