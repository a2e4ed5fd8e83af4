"""RG5: which paper's attention this is."""

from regard.check.rules.base import Rule, cross, pair

__all__ = ["RULES"]

_VASWANI = "Vaswani et al., NeurIPS 2017, section 3.2.1. arXiv:1706.03762"
_LUONG = "Luong, Pham and Manning, EMNLP 2015, section 3.1. arXiv:1508.04025"
_BAHDANAU = "Bahdanau, Cho and Bengio, ICLR 2015, appendix A.1.2. arXiv:1409.0473"

_SOURCE = '''
import torch


def attend(query, keys):
    """query (batch, T_dec, d_h), keys (batch, T_enc, d_h)"""
    scores = ...SCORES...
    weights = torch.softmax(scores, dim=-1)
    return weights @ keys, weights
'''
_SHOW = """
keys = torch.tensor([[[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]])
print(round(attend(torch.ones(1, 1, 4), keys)[1][0, 0, 0].item(), 3))
"""


def _missing_scale() -> Rule:
    bad, good = pair(
        _SOURCE.replace("...SCORES...", "query @ keys.transpose(1, 2)...HERE..."),
        wrong="",
        right=" / query.shape[-1] ** 0.5",
        show=_SHOW,
        prints=("0.982", "0.881"),
        contract=cross(score="scaled_dot"),
    )
    return Rule(
        code="RG501",
        name="missing-scale",
        level="warning",
        title="A scaled dot product is declared and the scores are not scaled",
        equation="score = q . k / sqrt(d): its spread does not grow with d",
        what="A dot product of d numbers of order 1 has a spread of sqrt(d). Without the "
        "scale the softmax is nearly one-hot for large d, and its gradient nearly 0.",
        hides="Small models train well without it. The trouble begins when d grows.",
        recipe="Divide the scores by sqrt(d), with d the width of what is multiplied.",
        not_a_bug="Luong's dot score, and models that put the scale into their weights: "
        'declare the score `dot`, or the scale `"1"`.',
        bad=bad,
        good=good,
        references=(_VASWANI,),
    )


def _double_scale() -> Rule:
    bad, good = pair(
        _SOURCE.replace(
            "    scores = ...SCORES...",
            "    query = query / query.shape[-1] ** 0.5\n"
            "    scores = query @ keys.transpose(1, 2)...HERE...",
        ),
        wrong=" / query.shape[-1] ** 0.5",
        right="",
        show=_SHOW,
        prints=("0.731", "0.881"),
        contract=cross(score="scaled_dot"),
    )
    return Rule(
        code="RG502",
        name="double-scale",
        level="warning",
        title="Scores are scaled twice",
        equation="score = q . k / sqrt(d): its spread does not shrink with d",
        what="The queries are scaled and the scores are scaled again, or the scale divides by "
        "d in place of its root. The spread falls as 1 / sqrt(d) and the weights become even.",
        hides="Nothing overflows and every row sums to 1. Attention is only weaker than it "
        "could be.",
        recipe="Keep one of the two. scaled_dot_product_attention brings a scale of its own.",
        not_a_bug="A temperature on purpose: declare the scale that is meant.",
        bad=bad,
        good=good,
        references=(_VASWANI,),
    )


def _step_convention() -> Rule:
    bad, good = pair(
        '''
import torch
from torch import nn


class Decoder(nn.Module):
    """words (batch, T_dec, d_emb), keys (batch, T_enc, d_h)"""

    def __init__(self, d_emb, d_s, d_h):
        super().__init__()
        self.cell = nn.GRUCell(d_emb + d_h, d_s)
        self.query = nn.Linear(d_s, d_h)

    def attend(self, state, keys):
        scores = torch.einsum("bd,bid->bi", self.query(state), keys)
        weights = torch.softmax(scores, dim=-1)
        return torch.einsum("bi,bid->bd", weights, keys), weights

    def forward(self, words, keys):
        state = keys.new_zeros(len(keys), self.cell.hidden_size)
        context, states, alignment = keys.mean(dim=1), [], []
        for word in words.unbind(dim=1):
            ...HERE...
            states.append(state)
            alignment.append(weights)
        return torch.stack(states, dim=1), torch.stack(alignment, dim=1)
''',
        wrong="state = self.cell(torch.cat([word, context], dim=-1), state)\n"
        "            context, weights = self.attend(state, keys)",
        right="context, weights = self.attend(state, keys)\n"
        "            state = self.cell(torch.cat([word, context], dim=-1), state)",
        entry="Decoder",
        show="""
torch.manual_seed(0)
decoder, keys = Decoder(2, 3, 5), torch.randn(1, 7, 5)
_, one = decoder(torch.zeros(1, 1, 2), keys)
_, other = decoder(torch.ones(1, 1, 2), keys)
print("the word moves its own weights:", not torch.equal(one, other))
""",
        prints=(
            "the word moves its own weights: True",
            "the word moves its own weights: False",
        ),
        contract={
            "init": {"d_emb": "d_emb", "d_s": "d_s", "d_h": "d_h"},
            "inputs": {"words": "batch T_dec d_emb", "keys": "batch T_enc d_h"},
            "returns": [
                {"name": "states", "axes": "batch T_dec d_s"},
                {"name": "weights", "axes": "batch T_dec T_enc"},
            ],
            "weights": {"output": "weights", "sums_to_one_over": -1},
            "score": "general",
            "positions": "recurrent",
            "convention": "bahdanau",
        },
    )
    return Rule(
        code="RG503",
        name="step-convention",
        level="note",
        title="The query is the state of another step than the named paper uses",
        equation="Bahdanau: weights_t from s_{t-1}; Luong: weights_t from s_t",
        what="Bahdanau et al. score with the state before the step and feed the context into "
        "it; Luong et al. take the step first and score with the new state. The code does the "
        "one where the other is declared.",
        hides="Both train, and both are published. Weights that are copied from a model of "
        "the other kind give other results.",
        recipe="Move the attention before the recurrent step (Bahdanau) or after it (Luong).",
        not_a_bug="Unless a paper is to be followed: JoeyNMT, a code base for teaching, feeds "
        "the new state to its Bahdanau score too. `--paper` makes it an error.",
        bad=bad,
        good=good,
        references=(_BAHDANAU, _LUONG),
    )


def _other_score() -> Rule:
    bad, good = pair(
        _SOURCE.replace("...SCORES...", "query @ keys.transpose(1, 2)...HERE..."),
        wrong=" / query.shape[-1] ** 0.5",
        right="",
        show=_SHOW,
        prints=("0.881", "0.982"),
        contract=cross(score="dot"),
    )
    return Rule(
        code="RG504",
        name="other-score",
        level="note",
        title="What is computed is not what was declared",
        equation="weights = softmax(declared score), recomputed from the same queries and keys",
        what="The declared attention, recomputed in float64 from the queries, keys and values "
        "of the run, gives other weights or another context. A note where the code is exactly "
        "another published score, which it then names; more than a note where it is none: a "
        "score bent by a surplus operation, positions that do not reach the scores, a query "
        "that is another state.",
        hides="Every score gives weights that sum to 1, and most of them train.",
        recipe="Change the code to the declared score, or the declaration to the score in use.",
        not_a_bug="When the score in use is the one that is wanted.",
        bad=bad,
        good=good,
        references=(_BAHDANAU, _LUONG, _VASWANI),
    )


RULES = (_missing_scale(), _double_scale(), _step_convention(), _other_score())
