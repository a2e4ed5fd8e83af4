"""RG6: numbers that fit their dtype."""

from regard.check.rules.base import Rule, cross, pair

__all__ = ["RULES"]


def _mask_value_overflow() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys, keep):
    """float16; keep (batch, T_enc): True on real keys"""
    scores = query @ keys.transpose(1, 2)
    scores = scores.masked_fill(~keep[:, None, :], ...HERE...)
    weights = torch.softmax(scores, dim=-1)
    return weights @ keys, weights
''',
        wrong="-1e9",
        right="torch.finfo(scores.dtype).min",
        show="""
half, keep = torch.ones(1, 3, 5).half(), torch.tensor([[True, True, False]])
try:
    print(attend(half[:, :1], half, keep)[1].flatten().tolist())
except RuntimeError as error:
    print(type(error).__name__)
""",
        prints=("RuntimeError", "[0.5, 0.5, 0.0]"),
        contract=cross(keep=True, dtype="float16"),
    )
    return Rule(
        code="RG601",
        name="mask-value-overflow",
        level="error",
        title="The fill value of a mask does not fit the dtype",
        equation="|fill| <= largest finite number of the dtype (65504 in float16)",
        what="A constant such as -1e9 cannot be stored in half precision. PyTorch raises "
        "where it is filled in; where it is multiplied or added it becomes infinite, and "
        "infinity times 0 is NaN.",
        hides="It works in float32, and half precision comes with the first large run.",
        recipe="Take the value from the dtype, `torch.finfo(scores.dtype).min`, or fill with "
        '`float("-inf")`.',
        not_a_bug="Code that always casts to float32 before the mask.",
        bad=bad,
        good=good,
    )


def _softmax_overflow() -> Rule:
    bad, good = pair(
        '''
import torch


def softmax(scores):
    e = torch.exp(...HERE...)
    return e / e.sum(dim=-1, keepdim=True)


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    weights = softmax(query @ keys.transpose(1, 2))
    return weights @ keys, weights
''',
        wrong="scores",
        right="scores - scores.amax(dim=-1, keepdim=True)",
        show="""
keys = torch.tensor([[[1000.0], [0.0]]])
print(attend(torch.ones(1, 1, 1), keys)[1].flatten().tolist())
""",
        prints=("[nan, 0.0]", "[1.0, 0.0]"),
        contract=cross(),
    )
    return Rule(
        code="RG602",
        name="softmax-overflow",
        level="error",
        title="Large scores make the softmax infinite or NaN",
        equation="softmax(s) = softmax(s - max(s)), which never exceeds exp(0)",
        what="The exponential of a score above 88 is infinite in float32 (above 11 in "
        "float16), and infinity over infinity is NaN. Subtracting the largest score of the "
        "row first changes nothing but that.",
        hides="Scores of order 1, as at the start of training, are far from the limit.",
        recipe="Subtract the maximum over the keys of the same row, or call the library's "
        "softmax. The maximum of the whole tensor makes distant rows 0 / 0.",
        not_a_bug="Scores that are bounded by construction, as v . tanh(...) is by sum |v|. "
        "An exponential beside the softmax that overflows first, as of a gate, is a warning.",
        bad=bad,
        good=good,
    )


def _low_precision_softmax() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h), both float32"""
    scores = query @ keys.transpose(1, 2)
    weights = ...HERE...
    return weights @ keys, weights
''',
        wrong="torch.softmax(scores.bfloat16(), dim=-1).float()",
        right="torch.softmax(scores, dim=-1)",
        show="""
_, weights = attend(torch.zeros(1, 1, 5), torch.ones(1, 3, 5))
print(round(weights[0, 0, 0].item(), 4))
""",
        prints=("0.334", "0.3333"),
        contract=cross(),
    )
    return Rule(
        code="RG603",
        name="low-precision-softmax",
        level="warning",
        title="Weights are less exact than their dtype",
        equation="|weights - exact| <= k units in the last place of the dtype",
        what="The softmax, or the sum of its exponentials, ran in half precision. bfloat16 "
        "keeps 8 bits: weights are off by up to 1 part in 256, and a row no longer sums to 1.",
        hides="The result is finite and nearly right. It shows where many small weights are "
        "summed, or where two runs are compared.",
        recipe="Do the softmax in float32 and cast the weights afterwards.",
        not_a_bug="Where the loss was measured and accepted.",
        bad=bad,
        good=good,
    )


RULES = (_mask_value_overflow(), _softmax_overflow(), _low_precision_softmax())
