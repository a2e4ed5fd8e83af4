"""RG4: several attentions side by side, each on its own features."""

from regard.check.rules.base import Rule, pair, within

__all__ = ["RULES"]

_SOURCE = '''
import torch


def split(t, heads):
    batch, T, d_model = t.shape
    return ...SPLIT...


def merge(t):
    batch, heads, T, d_head = t.shape
    return ...MERGE...


def attend(x, heads):
    """x (batch, T, d_model); every head reads its own d_model / heads features"""
    part = split(x, heads)
    scores = ...SCORES... / ...WIDTH... ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return merge(weights @ part), weights
'''
_RIGHT = {
    "...SPLIT...": "t.view(batch, T, heads, d_model // heads).transpose(1, 2)",
    "...MERGE...": "t.transpose(1, 2).reshape(batch, T, heads * d_head)",
    "...SCORES...": "part @ part.transpose(2, 3)",
    "...WIDTH...": "part.shape[-1]",
}
_CONTRACT = within({"x": "batch T d_model", "heads": ""}, heads=True, values={"heads": "heads"})


def _source(place: str) -> str:
    """Return the file, right but for one place, where the two examples differ."""
    source = _SOURCE
    for mark, right in _RIGHT.items():
        source = source.replace(mark, "...HERE..." if mark == place else right)
    return source


def _heads_mixed() -> Rule:
    bad, good = pair(
        _source("...SPLIT..."),
        wrong="t.view(batch, heads, T, d_model // heads)",
        right=_RIGHT["...SPLIT..."],
        show="""
print(split(torch.arange(8.0).view(1, 2, 4), 2)[0, 0].tolist())
""",
        prints=("[[0.0, 1.0], [2.0, 3.0]]", "[[0.0, 1.0], [4.0, 5.0]]"),
        contract=_CONTRACT,
    )
    return Rule(
        code="RG401",
        name="heads-mixed",
        level="error",
        title="Splitting into heads cuts across positions",
        equation="head[h][t] = x[t][h d_head : (h + 1) d_head]",
        what="A view straight to (batch, heads, T, d_head) has the right shape and other "
        "numbers: the first head gets all features of the first positions, rather than the "
        "first features of all positions.",
        hides="The shape is right, and the merge often undoes the same view, so a round trip "
        "gives the input back.",
        recipe="View to (batch, T, heads, d_head) first, then transpose the two middle axes.",
        not_a_bug="Never: the order of memory decides, and a view does not change it.",
        bad=bad,
        good=good,
    )


def _merge_order() -> Rule:
    bad, good = pair(
        _source("...MERGE..."),
        wrong="t.reshape(batch, T, heads * d_head)",
        right=_RIGHT["...MERGE..."],
        show="""
x = torch.arange(8.0).view(1, 2, 4)
print(merge(split(x, 2))[0, 0].tolist())
""",
        prints=("[0.0, 1.0, 4.0, 5.0]", "[0.0, 1.0, 2.0, 3.0]"),
        contract=_CONTRACT,
    )
    return Rule(
        code="RG402",
        name="merge-order",
        level="error",
        title="Heads are merged in another order than they were split",
        equation="merge(split(x)) = x",
        what="The contexts of the heads are put back together without undoing the transpose, "
        "so a position receives features of other positions.",
        hides="The shape is right. A projection after the merge learns around a fixed order "
        "of features, but not around mixed positions.",
        recipe="Transpose the head axis back behind the time axis, then reshape.",
        not_a_bug="Another order of features alone, if the projection after it was trained "
        "with that order.",
        bad=bad,
        good=good,
    )


def _head_scale() -> Rule:
    bad, good = pair(
        _source("...WIDTH..."),
        wrong="x.shape[-1]",
        right=_RIGHT["...WIDTH..."],
        show="""
x = torch.tensor([[[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]])
print(round(attend(x, 4)[1][0, 0, 0, 0].item(), 3))
""",
        prints=("0.622", "0.731"),
        contract=_CONTRACT,
    )
    return Rule(
        code="RG403",
        name="head-scale",
        level="warning",
        title="Scores are scaled by the width of the model, not by that of a head",
        equation="score[h] = q[h] . k[h] / sqrt(d_head)",
        what="A score sums over the d_head features of one head, so its spread grows as "
        "sqrt(d_head). Dividing by sqrt(d_model) makes it sqrt(heads) times too small, and "
        "the weights too even.",
        hides="With one head both are the same. With more, training can make up for a "
        "constant factor, slowly.",
        recipe="Take the width from the tensor that is scored: `q.shape[-1]` after the split.",
        not_a_bug="Weights that were trained with that scale: declare it (`scale`).",
        bad=bad,
        good=good,
        references=("Vaswani et al., NeurIPS 2017, section 3.2. arXiv:1706.03762",),
    )


def _head_leak() -> Rule:
    bad, good = pair(
        _source("...SCORES..."),
        wrong='torch.einsum("bhqd,bgkd->bhqk", part, part)',
        right='torch.einsum("bhqd,bhkd->bhqk", part, part)',
        show="""
x = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
print(round(attend(x, 2)[1][0, 0, 0, 0].item(), 3))
""",
        prints=("0.5", "0.731"),
        contract=_CONTRACT,
    )
    return Rule(
        code="RG404",
        name="head-leak",
        level="error",
        title="One head depends on the input of another",
        equation="context[h] depends on q[h], k[h] and v[h] alone, before the output "
        "projection",
        what="An operation sums, normalises or broadcasts over the head axis. In the example "
        "the letters h and g differ, so the keys of all heads are summed into every head.",
        hides="All shapes are right, and with one head nothing is wrong.",
        recipe="Use one letter for the head axis in every operand, and check which axis a "
        "normaliser runs over.",
        not_a_bug="Talking-heads attention mixes heads on purpose; grouped queries share the "
        "keys of one group.",
        bad=bad,
        good=good,
    )


RULES = (_heads_mixed(), _merge_order(), _head_scale(), _head_leak())
