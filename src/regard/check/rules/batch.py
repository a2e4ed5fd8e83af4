"""RG8: an example is what it is, whatever stands beside it and whatever came before."""

from regard.check.rules.base import Rule, cross, pair

__all__ = ["RULES"]


def _batch_mixed() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (T_enc, batch, d_h)"""
    T_enc, batch, d_h = keys.shape
    keys = keys...HERE...
    weights = torch.softmax(query @ keys.transpose(1, 2), dim=-1)
    return weights @ keys, weights
''',
        wrong=".reshape(batch, T_enc, d_h)",
        right=".transpose(0, 1)",
        show="""
keys = torch.tensor([[[0.0], [10.0]], [[1.0], [11.0]]])
print(attend(torch.zeros(2, 1, 1), keys)[0][0].item())
""",
        prints=("5.0", "0.5"),
        contract=cross(inputs={"query": "batch T_dec d_h", "keys": "T_enc batch d_h"}),
    )
    return Rule(
        code="RG801",
        name="batch-mixed",
        level="error",
        title="One example changes another",
        equation="f(x)[b] does not depend on x[c] for c other than b",
        what="A view, a reshape, a repeat or a concatenation along the wrong axis puts "
        "numbers of several examples into one row.",
        hides="The shape is right. With a batch of one nothing is wrong, which is how the "
        "code was tried.",
        recipe="Move axes with transpose or permute, never with view or reshape; repeat rows "
        "with repeat_interleave where they stay together.",
        not_a_bug="Losses over pairs in a batch, and batch normalisation while training.",
        bad=bad,
        good=good,
    )


def _batch_size_matters() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    if query.shape[0] == 1:  # one text: no batched product is needed
        scores = (query[0] @ keys[0].T)[None]...HERE...
    else:
        scores = query @ keys.transpose(1, 2) / query.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=-1)
    return weights @ keys, weights
''',
        wrong="",
        right=" / query.shape[-1] ** 0.5",
        show="""
query, keys = torch.ones(2, 1, 4), torch.ones(2, 2, 4)
keys[:, 1] = 0.0
for batch in (1, 2):
    print(round(attend(query[:batch], keys[:batch])[1][0, 0, 0].item(), 3))
""",
        prints=("0.982\n0.881", "0.881\n0.881"),
        contract=cross(score="scaled_dot"),
    )
    return Rule(
        code="RG802",
        name="batch-size-matters",
        level="error",
        title="An example alone gives another result than in a batch",
        equation="f(x[b])[0] = f(x)[b]",
        what="The size of the batch decides what is computed: a branch for a batch of one, a "
        "statistic over the batch, an axis that vanishes at size 1.",
        hides="Training never runs with a batch of one, and use never with more.",
        recipe="Compute one text as a batch of one, by the same code.",
        not_a_bug="Batch statistics while training.",
        bad=bad,
        good=good,
    )


def _state_kept() -> Rule:
    bad, good = pair(
        '''
import torch
from torch import nn


class Attend(nn.Module):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""

    def __init__(self, d_h):
        super().__init__()
        self.project = nn.Linear(d_h, d_h, bias=False)
        self.projected = None

    def forward(self, query, keys):
        ...HERE...
        weights = torch.softmax(query @ self.projected.transpose(1, 2), dim=-1)
        return weights @ keys, weights
''',
        wrong="if self.projected is None:\n            self.projected = self.project(keys)",
        right="self.projected = self.project(keys)",
        entry="Attend",
        show="""
torch.manual_seed(0)
layer, query = Attend(5), torch.randn(1, 2, 5)
first, second = torch.randn(2, 1, 3, 5)
alone = layer(query, second)[1]
layer.projected = None
layer(query, first)
print(torch.equal(layer(query, second)[1], alone))
""",
        prints=("False", "True"),
        contract=cross(init={"d_h": "d_h"}, score="general"),
    )
    return Rule(
        code="RG803",
        name="state-kept",
        level="error",
        title="A second call differs from the first",
        equation="f(x) = f(x), called twice, and f(y) after f(x) = f(y) on a fresh object",
        what="Something of a call is kept and used in the next: projected keys, angles, a "
        "mask, a running sum. Or an argument is changed in place, or dropout stays on in eval "
        "mode, so that no two calls agree.",
        hides="A test calls the layer once. In use the second text is read with the keys of "
        "the first.",
        recipe="Recompute it for every call, or store it under everything that it depends on.",
        not_a_bug="A key-value cache that is passed in and handed back by the caller. Weights "
        'that are sampled in eval mode on purpose: declare `"random": true`, and the code runs '
        "with every draw at its mean, so that what is kept between calls is still found.",
        bad=bad,
        good=good,
    )


RULES = (_batch_mixed(), _batch_size_matters(), _state_kept())
