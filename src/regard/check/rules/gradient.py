"""RG7: what learns, and from what."""

from regard.check.rules.base import Rule, cross, pair

__all__ = ["RULES"]


def _no_gradient() -> Rule:
    bad, good = pair(
        '''
import torch
from torch import nn


class Attend(nn.Module):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""

    def __init__(self, d_h):
        super().__init__()
        self.project = nn.Linear(d_h, d_h, bias=False)

    def forward(self, query, keys):
        projected = self.project(keys)...HERE...
        weights = torch.softmax(query @ projected.transpose(1, 2), dim=-1)
        return weights @ keys, weights
''',
        wrong=".detach()",
        right="",
        entry="Attend",
        show="""
torch.manual_seed(0)
layer = Attend(5)
query, keys = torch.randn(1, 2, 5, requires_grad=True), torch.randn(1, 3, 5)
layer(query, keys)[0].sum().backward()
print("gradient:", layer.project.weight.grad is not None)
""",
        prints=("gradient: False", "gradient: True"),
        contract=cross(init={"d_h": "d_h"}, score="general"),
    )
    return Rule(
        code="RG701",
        name="no-gradient",
        level="error",
        title="A parameter or an input that should learn gets no gradient",
        equation="d output / d parameter is not 0 everywhere",
        what="The way back is cut: by detach, .data, no_grad, a rounding, a parameter in a "
        "plain list, or because the parameter is not used at all. It keeps its first random "
        "value.",
        hides="The forward pass is right and the rest of the model learns around it.",
        recipe="Take the cut away, or register and use the parameter.",
        not_a_bug="Frozen layers, and the bias of a key projection: a number that is the same "
        "for all keys cancels in the softmax. A part that only picks keys by rank gets none "
        "from the result; it is a note, for it may have a loss of its own.",
        bad=bad,
        good=good,
    )


def _nan_gradient() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys, keep):
    """keep (batch, T_enc): True on real keys; an example may have none"""
    hidden = ~keep[:, None, :]
    scores = query @ keys.transpose(1, 2)
    ...HERE...
    return weights @ keys, weights
''',
        wrong="scores = scores + torch.where(hidden, -torch.inf, 0.0)\n"
        "    weights = torch.softmax(scores, dim=-1).nan_to_num()",
        right="scores = scores.masked_fill(hidden, -torch.inf)\n"
        "    weights = torch.softmax(scores, dim=-1).masked_fill(hidden, 0.0)",
        show="""
query = torch.ones(1, 1, 5, requires_grad=True)
attend(query, torch.ones(1, 3, 5), torch.zeros(1, 3, dtype=torch.bool))[0].sum().backward()
print("NaN in the gradient:", query.grad.isnan().any().item())
""",
        prints=("NaN in the gradient: True", "NaN in the gradient: False"),
        contract=cross(keep=True, all_masked="zeros"),
    )
    return Rule(
        code="RG702",
        name="nan-gradient",
        level="error",
        title="The result is finite and its gradient is NaN",
        equation="isfinite(f(x)) implies isfinite(df / dx)",
        what="A NaN or an infinity was made on the way and replaced in the result only. The "
        "way back goes through the operation that made it, and 0 times NaN is NaN.",
        hides="Every output is finite. The loss is finite too, and the parameters are NaN "
        "after the next step.",
        recipe="Keep the NaN from arising: fill the operand before the operation (masked_fill "
        "also stops the gradient), not the result after it.",
        not_a_bug="Never.",
        bad=bad,
        good=good,
    )


def _gradient_leak() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys, keep):
    """keep (batch, T_enc): True on real keys, False on padding"""
    scores = query @ keys.transpose(1, 2)
    masked = scores.masked_fill(~keep[:, None, :], float("-inf"))
    weights = ...HERE...
    return weights @ keys, weights
''',
        wrong="torch.softmax(masked, dim=-1).detach()\n"
        "    every = torch.softmax(scores, dim=-1)\n"
        "    weights = weights + (every - every.detach())",
        right="torch.softmax(masked, dim=-1)",
        show="""
keys = torch.tensor([[[1.0], [2.0], [3.0]]], requires_grad=True)
keep = torch.tensor([[True, True, False]])
attend(torch.ones(1, 1, 1), keys, keep)[0].sum().backward()
print("the padded key learns:", keys.grad[0, 2].item() != 0)
""",
        prints=("the padded key learns: True", "the padded key learns: False"),
        contract=cross(keep=True),
    )
    return Rule(
        code="RG703",
        name="gradient-leak",
        level="error",
        title="A gradient reaches keys that the row may not see",
        equation="d output[t] / d key[i] = 0 where i is hidden from t",
        what="The forward pass hides a key and the backward pass does not: a straight-through "
        "trick, a custom backward, or a mask that is applied to a detached copy.",
        hides="No output shows it: changing a hidden key changes nothing.",
        recipe="Let the gradient go through the masked scores alone.",
        not_a_bug="Straight-through estimators over visible keys.",
        bad=bad,
        good=good,
    )


def _wrong_gradient() -> Rule:
    bad, good = pair(
        '''
import torch


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores):
        weights = torch.softmax(scores, dim=-1)
        ctx.save_for_backward(weights)
        return weights

    @staticmethod
    def backward(ctx, grad):
        (weights,) = ctx.saved_tensors
        return ...HERE...


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    weights = Softmax.apply(query @ keys.transpose(1, 2))
    return weights @ keys, weights
''',
        wrong="weights * grad",
        right="weights * (grad - (weights * grad).sum(dim=-1, keepdim=True))",
        show="""
scores = torch.zeros(1, 2, requires_grad=True)
Softmax.apply(scores).sum().backward()
print(scores.grad.flatten().tolist())
""",
        prints=("[0.5, 0.5]", "[0.0, 0.0]"),
        contract=cross(),
    )
    return Rule(
        code="RG704",
        name="wrong-gradient",
        level="error",
        title="A custom backward is not the derivative of its forward",
        equation="df / dx = (f(x + h) - f(x - h)) / 2h, up to rounding",
        what="The backward that was written by hand leaves out a term, has the wrong sign or "
        "sums over the wrong axis. The example forgets that raising one weight lowers the "
        "others.",
        hides="The forward pass is right and the loss still falls, in a wrong direction that "
        "is not quite opposite.",
        recipe="Derive it again, compare with torch.autograd.gradcheck, or delete it and let "
        "autograd do it.",
        not_a_bug="Surrogate gradients on purpose.",
        bad=bad,
        good=good,
    )


RULES = (_no_gradient(), _nan_gradient(), _gradient_leak(), _wrong_gradient())
