"""Right code holds every relation; one planted mistake fails the relation that is about it."""

import pytest

from relation_subjects import SUBJECTS, failed, judged

# (subject, text, what stands there instead, relation, rule)
PLANTED = [
    # returns
    ("cross", "return np.einsum", "return weights, np.einsum", "declared-axes", "RG104"),
    ("additive", ".squeeze(-1)", ".squeeze()", "axes-at-size-one", "RG105"),
    (
        "cross",
        "scores = np.where",
        "lengths -= 0 * lengths + 1\n    scores = np.where",
        "inputs-kept",
        "RG803",
    ),
    # weights
    ("additive", "softmax(dim=1)", "softmax(dim=0)", "weights-sum-to-one", "RG301"),
    ("cross", "e / e.sum(axis=-1, keepdims=True)", "e", "weights-sum-to-one", "RG303"),
    ("rotary", "scores.softmax(dim=-1)", "scores.sigmoid()", "softmax-found", "RG303"),
    (
        "cross",
        "scores - scores.max(axis=-1, keepdims=True)",
        "scores.max(axis=-1, keepdims=True) - scores",
        "exponent-rises",
        "RG303",
    ),
    ("additive", "softmax(dim=1)", "softmax(dim=1).softmax(dim=1)", "softmax-once", "RG302"),
    (
        "rotary",
        "scores.softmax(dim=-1)",
        "scores.softmax(dim=-2)",
        "softmax-over-keys",
        "RG301",
    ),
    (
        "additive",
        "torch.tanh(self.W(state)[:, None] + self.U(memory))",
        "(self.W(state)[:, None] + self.U(memory))",
        "weights-need-query",
        "RG305",
    ),
    (
        "decoder",
        "alignment.append(alpha)",
        "alignment.append(alpha.flip(1))",
        "returned-weights-used",
        "RG304",
    ),
    # masks and patterns
    ("heads", ".triu(1)", ".triu(2)", "weights-follow-pattern", "RG204"),
    (
        "heads",
        'scores = scores.masked_fill(ahead, float("-inf"))',
        "pass",
        "receptive-field",
        "RG203",
    ),
    ("heads", "~keep[:, None, None]", "keep[:, None, None]", "receptive-field", "RG201"),
    ("additive", "scores.masked_fill(~mask, -1e9)", "scores", "mask-matters", "RG207"),
    (
        "additive",
        "scores.masked_fill(~mask, -1e9).softmax(dim=1)",
        "scores.softmax(dim=1) * mask",
        "weights-sum-to-one",
        "RG206",
    ),
    ("cross", "< lengths[:, None]", "<= lengths[:, None]", "mask-of-holes", "RG202"),
    ("cross", "< lengths[:, None]", "<= lengths[:, None]", "padding-unread", "RG202"),
    ("pool", "(rows != 0).any(dim=-1)", "rows.sum(dim=-1) != 0", "zero-rows-alone", "RG202"),
    # batch and order
    ("decoder", "softmax(dim=-1)", "softmax(dim=0)", "examples-apart", "RG801"),
    ("decoder", "softmax(dim=-1)", "softmax(dim=0)", "example-alone", "RG802"),
    (
        "heads",
        "t.view(t.size(0), t.size(1), self.n_heads, -1).transpose(1, 2)",
        "t.reshape(t.size(0), self.n_heads, t.size(1), -1)",
        "prefix",
        "RG203",
    ),
    ("rotary", "angle = torch.outer", "angle = 0 * torch.outer", "order-matters", "RG504"),
    (
        "layers",
        "weights = torch",
        "memory = memory + torch.arange(memory.size(1))[:, None]\n        weights = torch",
        "key-order",
        "RG102",
    ),
    (
        "cross",
        "weights = e /",
        "e = np.cumsum(e, axis=1)\n    weights = e /",
        "queries-apart",
        "RG103",
    ),
    # influence
    ("additive", "self.W(state)", "self.W(0 * state)", "inputs-matter", "RG305"),
    (
        "cross",
        '"bqk,bkd->bqd", weights, values',
        '"bqk,bkd->bqd", weights, values * (np.arange(values.shape[-1]) < 5)',
        "inputs-matter",
        "RG701",
    ),
    ("additive", "self.v(torch.tanh(", "(torch.tanh(", "runs", "RG101"),
    ("additive", ".softmax(dim=1)", ".softmax(dim=1).detach()", "parameters-matter", "RG701"),
    ("own backward", "grad * (1 - y * y)", "grad * (1 - y)", "gradient-is-derivative", "RG704"),
    # state, dice and numbers
    (
        "heads",
        "self.drop(weights)",
        "nn.functional.dropout(weights, 0.3)",
        "eval-repeatable",
        "RG803",
    ),
    (
        "heads",
        "scores.softmax(dim=-1)",
        "self.drop(scores).softmax(dim=-1)",
        "dropout-on-weights",
        "RG504",
    ),
    ("heads", "self.drop(weights)", "weights", "drops-in-training", "RG803"),
    (
        "cross",
        "scores - scores.max(axis=-1, keepdims=True)",
        "scores",
        "large-scores-finite",
        "RG602",
    ),
    (
        "cross",
        "scores.max(axis=-1, keepdims=True)",
        "scores.max()",
        "large-scores-finite",
        "RG602",
    ),
    # steps and layers
    (
        "decoder",
        "state = state, self.cell(word, state)",
        "state = state, self.cell(word, 0 * state)",
        "state-carried",
        "RG803",
    ),
    ("decoder", '"bd,btd->bt", state', '"bd,btd->bt", before', "step-convention", "RG503"),
    ("layers", "state[-1]", "state[0]", "declared-layer", "RG504"),
    (
        "decoder",
        "torch.tanh(self.W_c(torch.cat([context, state], dim=-1)))",
        "self.W_c(torch.cat([context, state], dim=-1))",
        "attentional-state-bounded",
        "RG504",
    ),
    ("decoder", "[context, state]", "[context, before]", "attentional-state-of-query", "RG504"),
    ("decoder", "[context, state]", "[state, context]", "attentional-state-joined", "RG504"),
    # scores
    ("heads", "** -0.5", "** 0", "score-scale", "RG501"),
    ("heads", "q.size(-1) ** -0.5", "x.size(-1) ** -0.5", "score-scale", "RG403"),
    ("cross", "np.sqrt(keys.shape[-1])", "keys.shape[-1]", "score-scale", "RG502"),
    ("cross", "np.sqrt(keys.shape[-1])", "keys.shape[-1]", "formula", "RG504"),
    ("additive", "torch.tanh(self.W", "torch.sigmoid(self.W", "score-form", "RG504"),
    ("additive", "[:, None] + self.U", "[:, None] * self.U", "score-form", "RG504"),
    (
        "additive",
        "[:, None] + self.U",
        "[:, None] - self.U",
        "sums-and-products-plain",
        "RG504",
    ),
    (
        "heads",
        "q @ k.transpose(2, 3)",
        "q @ k.tanh().transpose(2, 3)",
        "sums-and-products-plain",
        "RG504",
    ),
    # heads and parts
    (
        "rotary",
        "repeat_interleave(shared, dim=1)",
        "repeat(1, shared, 1, 1)",
        "context-recomputed",
        "RG401",
    ),
    (
        "heads",
        "mixed.transpose(1, 2).flatten(2)",
        "mixed.permute(0, 2, 3, 1).flatten(2)",
        "heads-merged",
        "RG402",
    ),
    (
        "heads",
        "mixed = self.drop(weights) @ v",
        "mixed = self.drop(weights).transpose(2, 3) @ v",
        "context-recomputed",
        "RG401",
    ),
    (
        "heads",
        "self.n_heads = n_heads",
        "self.n_heads = width // n_heads",
        "heads-declared",
        "RG401",
    ),
    ("heads", "q, k, v = (self", "q, v, k = (self", "packed-in-order", "RG504"),
    (
        "heads",
        "self.n_heads, -1).transpose(1, 2)",
        "-1, self.n_heads).permute(0, 3, 1, 2)",
        "heads-in-order",
        "RG402",
    ),
    (
        "cross",
        '"bqd,bkd->bqk", queries, keys',
        '"bqd,bkd->bqk", queries, keys[:, ::-1]',
        "formula",
        "RG504",
    ),
    # positions
    ("rotary", "turn(q) @ turn(k)", "turn(q) @ k", "distance-alone", "RG504"),
    ("rotary", "10000.0", "100.0", "rotation", "RG504"),
    ("rotary", "softmax(dim=-1) @ v", "softmax(dim=-1) @ turn(v)", "distance-alone", "RG504"),
    ("rotary", "softmax(dim=-1) @ v", "softmax(dim=-1) @ turn(v)", "values-unturned", "RG504"),
    ("alibi", "(cols - rows)", "(rows - cols)", "weights-recomputed", "RG504"),
    (
        "alibi",
        "torch.arange(1, heads + 1)",
        "torch.arange(heads)",
        "weights-recomputed",
        "RG504",
    ),
    # plain lists, which no recording sees
    ("lists", "x / sum(e) for x in e", "x for x in e", "weights-sum-to-one", "RG303"),
    (
        "lists",
        "a * b for a, b in zip(query, key)",
        "2 * a * b for a, b in zip(query, key)",
        "formula",
        "RG504",
    ),
    ("lists", "- top", "", "large-scores-finite", "RG602"),
]


@pytest.mark.parametrize("name", list(SUBJECTS))
def test_right_code_holds_every_relation_strict_ones_too(name: str) -> None:
    results = judged(name, strict=True)
    assert failed(results) == set()
    assert len(results.verdicts) > 20


@pytest.mark.parametrize(
    ("name", "old", "new", "relation", "rule"),
    PLANTED,
    ids=[f"{p[3]}-{p[0]}-{i}" for i, p in enumerate(PLANTED)],
)
def test_a_planted_mistake_fails_the_relation_about_it(
    name: str, old: str, new: str, relation: str, rule: str
) -> None:
    results = judged(name, old, new, strict=True)
    found = [v for v in results.verdicts if v.relation == relation and v.state == "fails"]
    assert found, failed(results)
    assert found[0].rule == rule


@pytest.mark.parametrize(
    ("name", "old", "new", "relation", "rule"), PLANTED, ids=range(len(PLANTED))
)
def test_a_message_stands_alone_without_capital_full_stop_or_fix(
    name: str, old: str, new: str, relation: str, rule: str
) -> None:
    for verdict in judged(name, old, new).failed:
        if verdict.relation in ("runs", "loads"):
            continue
        assert verdict.message
        assert not verdict.message.endswith(".")
        assert not verdict.message.split()[0].istitle()
        assert "use " not in verdict.message
