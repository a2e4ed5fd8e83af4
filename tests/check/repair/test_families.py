"""For every kind of mistake there is a family whose candidates hold its repair."""

import pytest

from regard.check.contract import Contract
from regard.check.repair.candidate import patched
from regard.check.repair.families.base import families, generate
from regard.check.repair.program import Program

torch = pytest.importorskip("torch")

HEAD = "import math\nimport numpy as np\nimport torch\nimport torch.nn as nn\n"
HEAD += "import torch.nn.functional as F\n\n\n"
PLAIN = """def f(q, k, keep, ids, lengths):
    n = q.size(1)
    total = k.size(1)
    batch = q.size(0)
    {line}
    return out
"""
LAYER = """class M(nn.Module):
    def __init__(self, width, n_heads, rest):
        super().__init__()
        self.n_heads, self.size = n_heads, width // n_heads
        {made}
        self.drop = nn.Dropout(0.5)

    def forward(self, x, state):
        {line}
        return out
"""
FUNCTION = Contract.from_mapping(
    {
        "inputs": {
            "q": "batch T_dec d_h",
            "k": "batch T_enc d_h",
            "keep": "batch T_enc",
            "ids": "batch T_enc",
            "lengths": "batch",
        },
        "kinds": {"keep": "keep", "ids": "token_ids_pad0", "lengths": "lengths"},
    }
)
MODULE = Contract.from_mapping(
    {
        "init": {"width": "d_model", "n_heads": "heads", "rest": "d_emb"},
        "inputs": {"x": "batch T d_model", "state": "batch d_model"},
    }
)

# The line as it is, the line as it should be, the family that knows.
LINES = [
    ("out = (q @ k.mT).softmax(dim=1)", "out = (q @ k.mT).softmax(dim=-1)", "axis"),
    (
        "out = torch.exp(q - n) / torch.exp(q)",
        "out = torch.exp(q - n) / torch.exp(q - n)",
        "pair",
    ),
    ("out = torch.einsum('bqd->bq', q)", "out = 1.0 / torch.einsum('bqd->bq', q)", "pair"),
    ("out = torch.sort(k, dim=1)", "out = torch.sort(k, dim=1, descending=True)", "pair"),
    ("out = k[:, :n, :total]", "out = k[:, total - n:total, :total]", "pair"),
    ("out = torch.arange(n)", "out = torch.arange(k.size(1))", "written-size"),
    (
        "out = q[:, :q.size(0)].unsqueeze(1)",
        "out = q[:, :q.size(1)].unsqueeze(0)",
        "written-size",
    ),
    ("out = k.T", "out = k.transpose(-2, -1)", "transpose"),
    (
        "out = torch.arange(n) - torch.arange(n)[:, None]",
        "out = (torch.arange(n) - torch.arange(n)[:, None]).abs()",
        "pair",
    ),
    (
        "out = torch.zeros(2, batch, 3).view(batch, 6, 1)",
        "out = torch.zeros(2, batch, 3).transpose(0, 1).reshape(batch, 6, 1)",
        "reshape",
    ),
    ("out = F.softmax(q @ k.mT)", "out = F.softmax(q @ k.mT, dim=-1)", "missing-axis"),
    ("out = q / q.sum(dim=-1)", "out = q / q.sum(dim=-1, keepdim=True)", "missing-axis"),
    ("out = q @ k.mT / n", "out = q @ k.mT / math.sqrt(n)", "root"),
    ("out = q @ k.mT / n", "out = q @ k.mT * n", "operator"),
    ("out = q - k[:, :n]", "out = k[:, :n] - q", "operator"),
    ("out = torch.tanh(q).sum(-1)", "out = torch.tanh(q.sum(-1))", "nesting"),
    ("out = q.softmax(-1) * n", "out = (q * n).softmax(-1)", "nesting"),
    ("out = q + 1", "out = torch.tanh(q + 1)", "function"),
    ("out = q[:, 1:]", "out = q[:, :1]", "slice"),
    ("out = q[:, :n]", "out = q[:, :total]", "name"),
    ("out = k[:, -2]", "out = k[:, -1]", "number"),
    ("out = torch.zeros(q.size(0))", "out = torch.zeros(q.size(1))", "shape-of"),
    ("out = ~keep", "out = keep", "polarity"),
    ("out = k * keep[:, None]", "out = k * keep[..., None]", "new-axis"),
    ("out = k.sum(-1) != 0", "out = (k != 0).any(-1)", "mask-source"),
    ("out = k.sum(-1) != 0", "out = ids != 0", "mask-source"),
    (
        "out = k.sum(-1).softmax(dim=1)",
        'out = k.sum(-1).masked_fill(~keep, float("-inf")).softmax(dim=1)',
        "mask-missing",
    ),
    (
        "out = torch.ones(n, total).tril()",
        "out = torch.ones(n, total).tril(total - n)",
        "triangle",
    ),
    ("out = torch.ones(n, n).triu(1)", "out = torch.ones(n, n).tril()", "triangle"),
    ("out = torch.arange(n) > lengths[0]", "out = torch.arange(n) >= lengths[0]", "comparison"),
    (
        'out = torch.einsum("bqd,bkd->bkq", q, k)',
        'out = torch.einsum("bqd,bkd->bqk", q, k)',
        "einsum",
    ),
    (
        "out = q.repeat(total, 1, 1)",
        "out = q.repeat_interleave(total, dim=0)",
        "repeat",
    ),
    ("out = k.masked_fill(keep[..., None], -1e9)", None, "fill"),
    ("q += 1; out = q", "q = q + 1; out = q", "in-place"),
    ("out = q.mul_(2)", "out = q.mul(2)", "in-place"),
    ("out = q.detach() @ k.mT", "out = q @ k.mT", "gradient"),
    ("out = torch.cat([k, k], dim=0)", "out = torch.cat([k, k], dim=1)", "axis"),
    ("out = torch.relu(q + 1)", "out = torch.tanh(q + 1)", "function"),
    (
        "out = [k[:, 0] for t in ()]\n    for t in range(total): out.append(k[:, 0])",
        "out = [k[:, 0] for t in ()]\n    for t in range(total): out.append(k[:, t])",
        "index",
    ),
    (
        "out = F.scaled_dot_product_attention(q, q, q, scale=1.0)",
        "out = F.scaled_dot_product_attention(q, q, q)",
        "scale",
    ),
    (
        "m = keep[:, None]\n    out = F.scaled_dot_product_attention(q, k, k, attn_mask=None)",
        "m = keep[:, None]\n    out = F.scaled_dot_product_attention(q, k, k, attn_mask=m)",
        "option",
    ),
    (
        "m = keep[:, None]\n    out = F.scaled_dot_product_attention(q, k, k, is_causal=True)",
        "m = keep[:, None]\n    out = F.scaled_dot_product_attention(q, k, k, attn_mask=m)",
        "option",
    ),
    ("out = k.reshape(total, batch, -1)", None, "reshape"),
]


def texts(program: Program) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in generate(program):
        found.setdefault(patched(program.source, each.spans), set()).add(each.kind)
    return found


@pytest.mark.parametrize(("line", "fixed", "kind"), [r for r in LINES if r[1]])
def test_a_repair_of_a_function_is_among_the_candidates(
    line: str, fixed: str, kind: str
) -> None:
    source = HEAD + PLAIN.format(line=line)
    program = Program(source, "made.py", "f", FUNCTION)
    wanted = HEAD + PLAIN.format(line=fixed)
    assert wanted in texts(program)
    alone = {patched(source, c.spans) for c in generate(program, [kind])}
    assert wanted in alone


LAYERS = [
    (
        ("self.a = nn.ModuleList([nn.Linear(width, 3)] * 2)", "out = self.a[1](x)"),
        (
            "self.a = nn.ModuleList([nn.Linear(width, 3) for _ in range(2)])",
            "out = self.a[1](x)",
        ),
        "anew",
    ),
    (
        ("self.a = None", "self.a = out = x.sum() if self.a is None else self.a"),
        ("self.a = None", "self.a = out = x.sum()"),
        "anew",
    ),
    (
        ("self.a = nn.Linear(width, rest)", "out = self.a(x).view(3, -1)"),
        ("self.a = nn.Linear(width, width)", "out = self.a(x).view(3, -1)"),
        "layer-size",
    ),
    (
        ("self.a = nn.MultiheadAttention(width, n_heads)", "out = self.a(x, x, x)[0]"),
        (
            "self.a = nn.MultiheadAttention(width, n_heads, batch_first=True)",
            "out = self.a(x, x, x)[0]",
        ),
        "layout",
    ),
    (
        ("self.a = nn.GRU(width, width, batch_first=True)", "out = self.a(x)[0]"),
        ("self.a = nn.GRU(width, width, batch_first=True)", "out = self.a(x, state[None])[0]"),
        "state",
    ),
    (
        ("self.a = None", "out = x.view(x.size(0), self.n_heads, -1, self.size)"),
        (
            "self.a = None",
            "out = x.view(x.size(0), -1, self.n_heads, self.size).transpose(1, 2)",
        ),
        "reshape",
    ),
    (
        ("self.a = nn.Linear(width, width)", "out = x * 2"),
        ("self.a = nn.Linear(width, width)", "out = self.a(x) * 2"),
        "own-function",
    ),
    (
        ("self.a, self.b = nn.Linear(width, 3), nn.Linear(width, 3)", "out = self.a(x)"),
        ("self.a, self.b = nn.Linear(width, 3), nn.Linear(width, 3)", "out = self.b(state)"),
        "unused",
    ),
    (
        ("self.a = None", "out = F.dropout(x, 0.5)"),
        ("self.a = None", "out = F.dropout(x, 0.5, training=self.training)"),
        "dropout",
    ),
    (
        ("self.a = None", "out = self.drop(x).softmax(dim=-1)"),
        ("self.a = None", "out = self.drop(x.softmax(dim=-1))"),
        "nesting",
    ),
]


@pytest.mark.parametrize(("lines", "fixed", "kind"), LAYERS)
def test_a_repair_of_a_layer_is_among_the_candidates(lines, fixed, kind: str) -> None:
    source = HEAD + LAYER.format(made=lines[0], line=lines[1])
    program = Program(source, "made.py", "M", MODULE)
    wanted = HEAD + LAYER.format(made=fixed[0], line=fixed[1])
    assert wanted in {patched(source, c.spans) for c in generate(program, [kind])}


def test_a_layer_that_no_line_calls_is_tried_around_what_is_returned() -> None:
    made = "self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)"
    source = HEAD + LAYER.format(made=made, line="out = self.a(x)")
    program = Program(source, "made.py", "M", MODULE)
    found = {patched(source, c.spans) for c in generate(program, ["unused"])}
    assert source.replace("return out", "return self.b(out)") in found
    assert source.replace("return out", "return self.a(out)") not in found


def test_one_idea_that_is_written_twice_is_changed_at_both_places() -> None:
    source = HEAD + PLAIN.format(line="out = q.sum(dim=1), k.sum(dim=1)")
    wanted = HEAD + PLAIN.format(line="out = q.sum(dim=0), k.sum(dim=0)")
    assert wanted in texts(Program(source, "made.py", "f", FUNCTION))


def test_spans_of_a_candidate_lie_in_the_text_and_apart() -> None:
    for line, _, _ in LINES:
        source = HEAD + PLAIN.format(line=line)
        for each in generate(Program(source, "made.py", "f", FUNCTION)):
            spans = sorted(each.spans)
            assert all(0 <= a <= b <= len(source) for a, b, _ in spans)


def test_every_family_reads_what_it_does_not_know_without_an_error() -> None:
    odd = (
        "def f(q, *rest, k=None, **more):\n    x = [*rest]\n    return x or (yield) or q[...]\n"
    )
    program = Program(odd, "odd.py", "f", Contract.from_mapping({"inputs": {"q": "batch d_h"}}))
    generate(program)
    for functions in families.values():
        for function in functions:
            list(function(program))


def test_what_is_kept_from_call_to_call_may_be_made_at_each() -> None:
    line = "if self.a is None:\n            self.a = x.sum()\n        out = self.a"
    source = HEAD + LAYER.format(made="self.a = None", line=line)
    wanted = HEAD + LAYER.format(
        made="self.a = None", line="self.a = x.sum()\n        out = self.a"
    )
    program = Program(source, "made.py", "M", MODULE)
    assert wanted in {patched(source, c.spans) for c in generate(program, ["anew"])}


def test_a_running_sum_takes_the_factor_of_another_in_its_loop() -> None:
    body = """total, out = q.sum(-1), q
    for i in range(n):
        old = total.sum()
        total = total * old + 1
        out = {sum} + 1"""
    source = HEAD + PLAIN.format(line=body.format(sum="out"))
    wanted = HEAD + PLAIN.format(line=body.format(sum="out * old.unsqueeze(-1)"))
    program = Program(source, "made.py", "f", FUNCTION)
    assert wanted in {patched(source, c.spans) for c in generate(program, ["pair"])}


def test_a_number_that_says_where_positions_start_is_changed_at_both_calls() -> None:
    turn = "def turn(x, start):\n    return x * start\n\n\n"
    source = HEAD + turn + PLAIN.format(line="out = turn(q, 0), turn(k, 0)")
    wanted = HEAD + turn + PLAIN.format(line="out = turn(q, total), turn(k, total)")
    program = Program(source, "made.py", "f", FUNCTION)
    found = {patched(source, c.spans) for c in generate(program, ["written-size"])}
    assert wanted in found
