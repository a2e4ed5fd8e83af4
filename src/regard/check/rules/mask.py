"""RG2: who may attend to what, and whether the weights obey."""

from regard.check.rules.base import Rule, cross, pair, within

__all__ = ["RULES"]

_FIRST_ROW = """
keep = torch.tensor([[True, True, False]])
_, weights = attend(torch.zeros(1, {}, 5), {}keep)
print([round(weight, 3) for weight in weights[0, 0].tolist()])
"""
_CROSS = _FIRST_ROW.format(1, "torch.ones(1, 3, 5), ")
_WITHIN = _FIRST_ROW.format(3, "")

_CAUSAL = '''
import torch


def attend(x):
    """x (batch, T, d_model); a position sees itself and what came before"""
    T = x.shape[1]
    later = torch.ones(T, T, dtype=torch.bool).triu(...OFFSET...)
    scores = x @ x.transpose(1, 2) / x.shape[-1] ** 0.5
    weights = torch.softmax(...SCORES..., dim=-1)
    return weights @ x, weights
'''
_SHOW_CAUSAL = """
_, weights = attend(torch.zeros(1, 3, 5))
print([round(weight, 3) for weight in weights[0, 0].tolist()])
"""
_MASKED = 'scores.masked_fill(later, float("-inf"))'


def _mask_inverted() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys, keep):
    """keep (batch, T_enc): True on real keys, False on padding"""
    scores = query @ keys.transpose(1, 2)
    scores = scores.masked_fill(...HERE...[:, None, :], float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ keys, weights
''',
        wrong="keep",
        right="(~keep)",
        show=_CROSS,
        prints=("[0.0, 0.0, 1.0]", "[0.5, 0.5, 0.0]"),
        contract=cross(keep=True),
    )
    return Rule(
        code="RG201",
        name="mask-inverted",
        level="error",
        title="Attention goes exactly where it may not",
        equation="weights[t, i] = 0 where key i is hidden, and > 0 where it is not",
        what="The mask is read the other way round: True hides a key where the author says "
        "that True shows it, or the reverse. All weight lies on the padding.",
        hides="Rows sum to 1, and texts without padding are not affected. Libraries differ: "
        "True attends in torch's scaled_dot_product_attention and is hidden in its "
        "MultiheadAttention.",
        recipe="Invert the mask once, at the door, and name it for what True means (`keep`).",
        not_a_bug="The mask marks padding and was declared the other way: declare `drop`.",
        bad=bad,
        good=good,
        references=(
            "PyTorch, torch.nn.functional.scaled_dot_product_attention, attn_mask",
            "PyTorch, torch.nn.MultiheadAttention, key_padding_mask",
        ),
    )


def _padding_leak() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys, keep):
    """keep (batch, T_enc): True on real keys, False on padding"""
    scores = query @ keys.transpose(1, 2)
    weights = torch.softmax(...HERE..., dim=-1)
    return weights @ keys, weights
''',
        wrong="scores * keep[:, None, :]",
        right='scores.masked_fill(~keep[:, None, :], float("-inf"))',
        show=_CROSS,
        prints=("[0.333, 0.333, 0.333]", "[0.5, 0.5, 0.0]"),
        contract=cross(keep=True),
    )
    return Rule(
        code="RG202",
        name="padding-leak",
        level="error",
        title="What stands in the padding changes the result",
        equation="f(keys) = f(keys') wherever keys and keys' differ in hidden places only",
        what="A hidden key still has weight, or its value still enters a sum, a mean or a "
        "maximum. Multiplying scores by the mask is the usual cause: a score of 0 is not "
        "small, it has weight exp(0) = 1.",
        hides="Padding is often zeros, so little comes through it. What a text gives depends "
        "on how long the other texts of its batch are.",
        recipe="Fill hidden scores with minus infinity (or the smallest number of the dtype) "
        "before the softmax, and keep padding out of every other sum over keys.",
        not_a_bug="Convolutions over the weights of the step before touch the neighbours of a "
        "padded key by design. Where a score counts what lies between key and query (gates "
        "that forget, queries that deselect for later ones), a hidden place inside a text acts "
        'on the rows behind it: declare `"positions": "content"`. Padding before the first key '
        "and after the last must still change nothing.",
        bad=bad,
        good=good,
    )


def _future_leak() -> Rule:
    source = _CAUSAL.replace("...OFFSET...", "1").replace("...SCORES...", "...HERE...")
    bad, good = pair(
        source,
        wrong="scores",
        right=_MASKED,
        show=_SHOW_CAUSAL,
        prints=("[0.333, 0.333, 0.333]", "[1.0, 0.0, 0.0]"),
        contract=within({"x": "batch T d_model"}, causal="top_left"),
    )
    return Rule(
        code="RG203",
        name="future-leak",
        level="error",
        title="A later position changes an earlier row",
        equation="output[t] does not depend on input[s] for s > t",
        what="A position sees what comes after it. While training it reads the answer; when "
        "texts are generated the answer is not there.",
        hides="The loss becomes better, not worse, until the model is used step by step.",
        recipe="Hide the later keys before the softmax, and look for other ways past the "
        "mask: a mean over all positions, a shift by one, an unmasked second path.",
        not_a_bug="Encoders see the whole text: declare `causal` false.",
        bad=bad,
        good=good,
        references=("Vaswani et al., NeurIPS 2017, section 3.2.3. arXiv:1706.03762",),
    )


def _causal_offset() -> Rule:
    source = _CAUSAL.replace("...SCORES...", _MASKED).replace("...OFFSET...", "...HERE...")
    bad, good = pair(
        source,
        wrong="2",
        right="1",
        show=_SHOW_CAUSAL,
        prints=("[0.5, 0.5, 0.0]", "[1.0, 0.0, 0.0]"),
        contract=within({"x": "batch T d_model"}, causal="top_left"),
    )
    return Rule(
        code="RG204",
        name="causal-offset",
        level="error",
        title="The causal pattern is off by one, or starts in the wrong corner",
        equation="query t sees key i exactly where i <= t + offset",
        what="A triangle is there, but not the intended one: it shows one key too many or too "
        "few, has the wrong side, or is anchored top left where T_enc > T_dec asks for bottom "
        "right, as it does with cached keys.",
        hides="A matrix of ones below the diagonal looks right, and the corner matters only "
        "when T_dec and T_enc differ.",
        recipe="Write the condition down, `key_position <= query_position`, and build the "
        "mask from positions rather than from sizes.",
        not_a_bug="A shifted target (the input starts with a begin symbol) may see one key "
        "more: declare the window that is meant. Where the code chooses whom a query reads "
        'by blocks, tokens that see all, or sampled points, declare `"sparse": true`: that no '
        "hidden key is read is still asked.",
        bad=bad,
        good=good,
    )


def _all_masked_row() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys, keep):
    """keep (batch, T_enc): True on real keys; an example may have none"""
    hidden = ~keep[:, None, :]
    scores = (query @ keys.transpose(1, 2)).masked_fill(hidden, float("-inf"))
    weights = torch.softmax(scores, dim=-1)...HERE...
    return weights @ keys, weights
''',
        wrong="",
        right=".masked_fill(hidden, 0.0)",
        show="""
keep = torch.zeros(1, 3, dtype=torch.bool)
print(attend(torch.ones(1, 1, 5), torch.ones(1, 3, 5), keep)[1].flatten().tolist())
""",
        prints=("[nan, nan, nan]", "[0.0, 0.0, 0.0]"),
        contract=cross(keep=True, all_masked="zeros"),
    )
    return Rule(
        code="RG205",
        name="all-masked-row",
        level="warning",
        title="A query with no key to attend to gives NaN, or weight on padding",
        equation="weights[t, :] = 0 where no key is visible to t",
        what="A softmax over nothing but minus infinity is 0 / 0. Over a large finite fill "
        "value it is even: every padded key gets weight 1 / T_enc.",
        hides="Such rows are rare: an empty text, a row of padding, the first row of a "
        "shifted causal mask. One NaN then spreads through the next layer.",
        recipe="Choose what such a query gets: zeros (fill the weights with 0 where the mask "
        "hides), a sink key that is always visible, or an error.",
        not_a_bug="Rows that nobody reads, as those of padded queries, may hold anything "
        "finite.",
        bad=bad,
        good=good,
    )


def _mask_after_softmax() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys, keep):
    """keep (batch, T_enc): True on real keys, False on padding"""
    hidden = ~keep[:, None, :]
    scores = query @ keys.transpose(1, 2)
    weights = ...HERE...
    return weights @ keys, weights
''',
        wrong="torch.softmax(scores, dim=-1).masked_fill(hidden, 0.0)",
        right='torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)',
        show="""
keep = torch.tensor([[True, True, False]])
_, weights = attend(torch.zeros(1, 1, 5), torch.ones(1, 3, 5), keep)
print(round(weights.sum().item(), 3))
""",
        prints=("0.667", "1.0"),
        contract=cross(keep=True),
    )
    return Rule(
        code="RG206",
        name="mask-after-softmax",
        level="error",
        title="Weights are masked after the softmax and no longer sum to 1",
        equation="sum over visible i of weights[t, i] = 1",
        what="Hidden keys took part in the softmax and were set to 0 afterwards. The weight "
        "that they had is lost, so the context of a padded text is too small.",
        hides="Weights on padding are 0, as they should be, and texts without padding are "
        "right.",
        recipe="Mask the scores before the softmax, or divide by the new sum after the mask.",
        not_a_bug="Masking and then dividing by the sum is the same as masking before.",
        bad=bad,
        good=good,
    )


def _mask_ignored() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(query, keys, keep):
    """keep (batch, T_enc): True on real keys, False on padding"""
    scores = query @ keys.transpose(1, 2)
    ...HERE...scores.masked_fill(~keep[:, None, :], float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ keys, weights
''',
        wrong="",
        right="scores = ",
        show=_CROSS,
        prints=("[0.333, 0.333, 0.333]", "[0.5, 0.5, 0.0]"),
        contract=cross(keep=True),
    )
    return Rule(
        code="RG207",
        name="mask-ignored",
        level="error",
        title="The mask changes nothing",
        equation="f(keep) differs from f(keep') for masks that differ",
        what="The mask is accepted and never applied: its result is thrown away, a branch "
        "skips it, or it is passed under a name that nobody reads.",
        hides="The call does not raise, and the argument looks used.",
        recipe="Assign the masked scores, or hand the mask on to the call that makes the "
        "weights.",
        not_a_bug="An argument kept for compatibility: leave it out of the declared inputs.",
        bad=bad,
        good=good,
    )


def _mask_on_queries() -> Rule:
    bad, good = pair(
        '''
import torch


def attend(x, keep):
    """x (batch, T, d_model), keep (batch, T): True on real tokens"""
    scores = x @ x.transpose(1, 2) / x.shape[-1] ** 0.5
    scores = scores.masked_fill(~keep...HERE..., -1e9)
    weights = torch.softmax(scores, dim=-1)
    return weights @ x, weights
''',
        wrong="[:, :, None]",
        right="[:, None, :]",
        show=_WITHIN,
        prints=("[0.333, 0.333, 0.333]", "[0.5, 0.5, 0.0]"),
        contract=within({"x": "batch T d_model", "keep": "batch T"}, kinds={"keep": "keep"}),
    )
    return Rule(
        code="RG208",
        name="mask-on-queries",
        level="error",
        title="The mask hides rows where it should hide columns",
        equation="keep[b, i] stands at scores[b, t, i] for every t, on the axis of the keys",
        what="A mask over keys was put on the axis of the queries. The rows of padded queries "
        "are filled, which nobody reads, and every real query still sees the padding.",
        hides="In self-attention both axes have one length, so the mask fits either way.",
        recipe="Put the new axis before the keys: `keep[:, None, :]`.",
        not_a_bug="Zeroing the output of padded queries, in addition to hiding padded keys.",
        bad=bad,
        good=good,
    )


RULES = (
    _mask_inverted(),
    _padding_leak(),
    _future_leak(),
    _causal_offset(),
    _all_masked_row(),
    _mask_after_softmax(),
    _mask_ignored(),
    _mask_on_queries(),
)
