"""RG3: weights that sum to one over the right axis, once, and are the ones in use."""

from regard.check.rules.base import Rule, cross, pair

__all__ = ["RULES"]


def _softmax_axis() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = query @ keys.transpose(1, 2)
    weights = torch.softmax(scores, dim=...HERE...)
    return weights @ keys, weights
''',
        wrong="1",
        right="-1",
        show="""
_, weights = attend(torch.zeros(1, 2, 5), torch.ones(1, 3, 5))
print(weights[0].sum(dim=-1).tolist())
""",
        prints=("[1.5, 1.5]", "[1.0, 1.0]"),
        contract=cross(),
    )
    return Rule(
        code="RG301",
        name="softmax-axis",
        level="error",
        title="Weights sum to 1 over another axis than that of the keys",
        equation="sum over i of weights[t, i] = 1 for every query t",
        what="The softmax runs over the queries, the batch, the heads, an axis of size 1, or "
        "the whole matrix. The weights of one query then do not sum to 1, and its context is "
        "no mean of the values.",
        hides="Every shape is right, and every number lies between 0 and 1. At T_dec = 1 a "
        "softmax over the queries makes every weight 1.",
        recipe="Name the key axis. It is the last one of (batch, T_dec, T_enc): `dim=-1`.",
        not_a_bug="Scores that are stored (T_enc, T_dec) are normalised over axis -2: the "
        "axis of the keys is what counts, wherever it stands.",
        bad=bad,
        good=good,
        references=("Bahdanau, Cho and Bengio, ICLR 2015, equation 6. arXiv:1409.0473",),
    )


def _softmax_twice() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = query @ keys.transpose(1, 2)
    weights = torch.softmax(...HERE..., dim=-1)
    return weights @ keys, weights
''',
        wrong="torch.softmax(scores, dim=-1)",
        right="scores",
        show="""
keys = torch.tensor([[[100.0], [0.0], [0.0]]])
print(round(attend(torch.ones(1, 1, 1), keys)[1].max().item(), 3))
""",
        prints=("0.576", "1.0"),
        contract=cross(),
    )
    return Rule(
        code="RG302",
        name="softmax-twice",
        level="error",
        title="The softmax is applied to weights that are normalised already",
        equation="weights = softmax(score), where the scores are not bounded; twice is at "
        "most e / (e + T_enc - 1)",
        what="Scores go through two softmaxes, often one in a helper and one at the call. The "
        "second sees numbers between 0 and 1 only, so the weights stay almost even: with 3 "
        "keys none can exceed 0.576.",
        hides="Rows sum to 1 and the order of the weights is right. The model trains, and "
        "attends to everything a little.",
        recipe="Remove one of the two.",
        not_a_bug="A softmax over log-weights (log-softmax, then a temperature) is no second "
        "softmax in this sense: its input is not bounded below.",
        bad=bad,
        good=good,
    )


def _not_normalised() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = query @ keys.transpose(1, 2)
    weights = ...HERE...
    return weights @ keys, weights
''',
        wrong="torch.sigmoid(scores)",
        right="torch.softmax(scores, dim=-1)",
        show="""
_, weights = attend(torch.zeros(1, 2, 5), torch.ones(1, 3, 5))
print(weights[0].sum(dim=-1).tolist())
""",
        prints=("[1.5, 1.5]", "[1.0, 1.0]"),
        contract=cross(),
    )
    return Rule(
        code="RG303",
        name="not-normalised",
        level="error",
        title="Weights sum to 1 over no axis",
        equation="sum over i of weights[t, i] = 1 for every query t",
        what="The weights were made without a normaliser, or were changed after it: scaled, "
        "dropped, added to or rounded. The size of the context then grows and shrinks with "
        "the number of keys.",
        hides="A layer after the attention can learn to undo a constant factor, as long as "
        "all texts have one length.",
        recipe="Normalise over the keys, and change scores before it rather than weights "
        "after.",
        not_a_bug="Dropout on weights while training, and sigmoid attention on purpose. "
        'Declare the output without `"weights"` then. Where weights are multiplied after the '
        'softmax on purpose (gates, scaled talking heads), declare `"reweighted": true`: the '
        "softmax itself, the masks and the sum over values are still asked.",
        bad=bad,
        good=good,
    )


def _weights_not_used() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = query @ keys.transpose(1, 2)
    weights = torch.softmax(scores, dim=-1)
    return ...HERE... @ keys, weights
''',
        wrong="scores",
        right="weights",
        show="""
keys = torch.tensor([[[1.0], [3.0]]])
print(attend(torch.zeros(1, 1, 1), keys)[0].item())
""",
        prints=("0.0", "2.0"),
        contract=cross(),
    )
    return Rule(
        code="RG304",
        name="weights-not-used",
        level="error",
        title="The returned weights are not those that made the context",
        equation="context[t] = sum over i of weights[t, i] value[i]",
        what="The context was made from the scores, from weights before masking, from another "
        "step, or from the other of two contexts. What is returned and drawn as the alignment "
        "explains nothing.",
        hides="Both tensors look right by themselves: the weights sum to 1, and the context "
        "has the right shape.",
        recipe="Make the context from the tensor that is returned.",
        not_a_bug="Weights that are returned before dropout, beside a context made from the "
        "dropped ones.",
        bad=bad,
        good=good,
    )


def _query_ignored() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys, W, U, v):
    """query (batch, T_dec, d_s), keys (batch, T_enc, d_h); an additive score"""
    pairs = (query @ W)[:, :, None] + (keys @ U)[:, None]
    weights = torch.softmax(...HERE... @ v, dim=-1)
    return weights @ keys, weights
''',
        wrong="pairs",
        right="torch.tanh(pairs)",
        show="""
one, both = torch.ones(1, 1), torch.tensor([[[0.0], [1.0]]])
_, weights = attend(both, both, one, one, torch.ones(1))
print([round(weight, 3) for weight in weights[0, :, 1].tolist()])
""",
        prints=("[0.731, 0.731]", "[0.682, 0.55]"),
        contract=cross(
            inputs={
                "query": "batch T_dec d_s",
                "keys": "batch T_enc d_h",
                "W": "d_s d_attn",
                "U": "d_h d_attn",
                "v": "d_attn",
            },
            score="additive",
        ),
    )
    return Rule(
        code="RG305",
        name="query-ignored",
        level="error",
        title="All queries get the same weights",
        equation="the weights of two different queries differ",
        what="The query does not reach the weights, or only as a number that is the same for "
        "all keys, which a softmax cancels. An additive score without its tanh does that: v . "
        "(W s + U h) = v . W s + v . U h, and the first term falls out.",
        hides="Parameters of the query still exist and are saved, and the loss falls: a fixed "
        "average of the keys is better than nothing.",
        recipe="Put the nonlinearity back between the sum and v, or use the query where "
        "another tensor stands.",
        not_a_bug="Pooling with one learned query attends without an input query: declare the "
        "score as `pooling`. Keys that are left out by design, as in blocks: declare "
        '`"sparse": true`.',
        bad=bad,
        good=good,
        references=("Bahdanau, Cho and Bengio, ICLR 2015, appendix A.1.2. arXiv:1409.0473",),
    )


RULES = (
    _softmax_axis(),
    _softmax_twice(),
    _not_normalised(),
    _weights_not_used(),
    _query_ignored(),
)
