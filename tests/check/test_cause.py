"""From failing relations to findings: one a cause, at the line to mend, in named axes."""

import textwrap
from types import SimpleNamespace

import pytest

from regard.check.cause import causes
from regard.check.contract import Contract
from regard.check.finding import Edit, Fix
from regard.check.relations.base import Case, Results, ask, fails
from regard.check.subject import Loaded, load

torch = pytest.importorskip("torch")

QKV = {"q": "batch T_dec d_h", "k": "batch T_enc d_h", "v": "batch T_enc d_v"}
OUT = {"returns": [{"name": "out", "axes": "batch T_dec d_v"}], "score": "scaled_dot"}
BOTH = {
    "returns": [
        {"name": "out", "axes": "batch T_dec d_v"},
        {"name": "weights", "axes": "batch T_dec T_enc"},
    ],
    "weights": {"output": "weights", "sums_to_one_over": -1},
    "score": "scaled_dot",
}
SELF = {
    "init": {"width": "d_model", "heads": "heads"},
    "inputs": {"x": "batch T d_model"},
    "returns": [{"name": "out", "axes": "batch T d_model"}],
    "score": "scaled_dot",
}


def case_of(source, entry="attend", **form):
    guessed = form.pop("guessed", {})
    text = textwrap.dedent(source).lstrip()
    loaded = load(text, "/x/subject.py", entry)
    assert isinstance(loaded, Loaded), loaded
    contract = Contract.from_mapping(form).with_(guessed=guessed)
    return Case(loaded, contract)


def findings_of(source, entry="attend", found=None, **form):
    case = case_of(source, entry, **form)
    return causes(case, ask(case), found)


def the_finding(*args, **form):
    findings = findings_of(*args, **form)
    assert len(findings) == 1, [(f.code, f.location.line, f.message) for f in findings]
    return findings[0]


HEADS = """
import torch
import torch.nn as nn
class Attend(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
    def split(self, t):
        {split}
    def forward(self, x):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        y = weights @ v
        return self.out({merge})
"""
SPLIT = "return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)"
MERGE = "y.transpose(1, 2).flatten(2)"


def test_correct_code_has_no_finding():
    assert findings_of(HEADS.format(split=SPLIT, merge=MERGE), "Attend", **SELF) == []


def test_a_view_that_cuts_across_positions_is_told_from_one_that_merges_wrongly():
    wrong = "return t.view(t.shape[0], self.heads, t.shape[1], -1)"
    split = the_finding(HEADS.format(split=wrong, merge=MERGE), "Attend", **SELF)
    assert (split.code, split.location.line) == ("RG401", 9)
    assert "(batch, T, d_model) to (batch, heads, T, d_head) cuts across T" in split.message
    merge = the_finding(HEADS.format(split=SPLIT, merge="y.reshape(x.shape)"), "Attend", **SELF)
    assert (merge.code, merge.location.line) == ("RG402", 14)


def test_the_axis_is_blamed_on_the_caller_that_left_it_out_and_not_on_the_helper():
    finding = the_finding(
        """
        import numpy as np
        def softmax(z, axis=-1):
            e = np.exp(z - z.max(axis, keepdims=True))
            return e / e.sum(axis, keepdims=True)
        def pool(q, k):
            scores = (k @ q[..., None])
            weights = softmax(scores)
            return (weights * k).sum(1), weights[..., 0]
        """,
        "pool",
        inputs={"q": "batch d_h", "k": "batch T_enc d_h"},
        returns=[{"name": "c", "axes": "batch d_h"}, {"name": "w", "axes": "batch T_enc"}],
        weights={"output": "w"},
        score="dot",
    )
    assert finding.code == "RG301"
    assert finding.location.line == 7
    assert "T_enc" in finding.message


def test_the_axis_of_a_layer_is_blamed_on_its_construction():
    finding = the_finding(
        """
        import torch.nn as nn
        class Attend(nn.Module):
            def __init__(self):
                super().__init__()
                self.normalise = nn.Softmax(dim=1)
            def forward(self, q, k, v):
                weights = self.normalise(q @ k.mT / q.shape[-1] ** 0.5)
                return weights @ v, weights
        """,
        "Attend",
        inputs=QKV,
        **BOTH,
    )
    assert (finding.code, finding.location.line) == ("RG301", 5)
    assert "T_dec" in finding.message
    assert finding.fingerprint == "RG301:subject.Attend:weights"


def test_weights_summed_over_queries_are_blamed_on_the_sum():
    finding = the_finding(
        """
        import torch
        def attend(x):
            weights = (x @ x.mT / x.shape[-1] ** 0.5).softmax(-1)
            y = weights.mT @ x
            return y, weights
        """,
        inputs={"x": "batch T d_h"},
        returns=[{"name": "y", "axes": "batch T d_h"}, {"name": "w", "axes": "batch T T"}],
        weights={"output": "w"},
        score="scaled_dot",
    )
    assert (finding.code, finding.location.line) == ("RG102", 4)


def test_a_tiled_batch_is_blamed_on_the_repeat_and_says_both_orders():
    finding = the_finding(
        """
        import torch
        def attend(states, source, beam):
            source = source.repeat(beam, 1, 1)
            weights = torch.einsum("nd,ntd->nt", states, source).softmax(1)
            return torch.einsum("nt,ntd->nd", weights, source), weights
        """,
        inputs={"states": "batch*beam d_h", "source": "batch T_enc d_h", "beam": ""},
        values={"beam": "beam"},
        returns=[
            {"name": "context", "axes": "batch*beam d_h"},
            {"name": "weights", "axes": "batch*beam T_enc"},
        ],
        weights={"output": "weights"},
        score="dot",
    )
    assert finding.location.line == 3
    assert "beam*batch" in finding.message
    assert "batch*beam" in finding.message
    assert finding.tensor.expected == ("batch*beam", "T_enc", "d_h")


MASKED = """
import torch
def attend(q, k, v, valid):
    {mask}
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = scores.masked_fill({used}, float("-inf")).softmax(-1)
    return weights @ v, weights
"""
KEEP = {"inputs": {**QKV, "valid": "batch T_enc"}, "kinds": {"valid": "keep"}, **BOTH}


@pytest.mark.parametrize(
    ("mask", "used", "line"),
    [
        ("pad = valid", "pad[:, None]", 5),  # an alias makes nothing: its use is wrong
        ("pad = valid & True", "pad[:, None]", 3),
        ("keep = ~~valid", "keep[:, None]", 5),
        ("pad = ~(valid.cumsum(-1) > 2)", "pad[:, None]", 3),
        ("pad = ~valid", "pad[:, None] & False", 5),
    ],
)
def test_a_mask_is_blamed_where_it_stops_to_mean_what_the_argument_means(mask, used, line):
    findings = findings_of(MASKED.format(mask=mask, used=used), **KEEP)
    assert [f.location.line for f in findings] == [line]
    assert findings[0].code in ("RG201", "RG202", "RG207")


def test_a_mask_of_queries_is_told_from_a_mask_of_keys():
    finding = the_finding(
        """
        import torch
        def attend(x, keep):
            scores = x @ x.mT / x.shape[-1] ** 0.5
            blocked = ~keep.unsqueeze(-1)
            return scores.masked_fill(blocked, -1e9).softmax(-1) @ x
        """,
        inputs={"x": "batch T d_h", "keep": "batch T"},
        kinds={"keep": "keep"},
        returns=[{"name": "y", "axes": "batch T d_h"}],
        score="scaled_dot",
    )
    assert (finding.code, finding.location.line) == ("RG208", 4)
    assert "(batch, T, 1)" in finding.message


def test_a_crash_names_the_axes_and_the_coincidence_at_which_the_code_runs():
    finding = the_finding(
        """
        import torch
        def attend(q, k, v, keep, also):
            scores = q @ k.mT / q.shape[-1] ** 0.5
            mask = also[:, None]
            return scores.masked_fill(~mask, -1e9).softmax(-1) @ v
        """,
        inputs={**QKV, "keep": "batch T_enc", "also": "batch T_dec"},
        kinds={"keep": "keep", "also": "keep"},
        **OUT,
    )
    assert (finding.code, finding.location.line) == ("RG101", 4)
    assert "T_enc against T_dec" in finding.message
    assert finding.hidden == "runs when T_dec = T_enc"
    assert "must match" in finding.evidence.quote


LAYERS = """
import torch
import torch.nn as nn
class Attend(nn.Module):
    def __init__(self, d_s, d_h, d_attn):
        super().__init__()
        self.score = nn.Linear({size}, d_attn)
        self.v = nn.Linear(d_attn, 1)
    def forward(self, word, state, memory):
        n = memory.shape[1]
        query = state[:, None].expand(-1, n, -1)
        keys = {keys}
        joint = torch.cat([query, keys], dim=-1)
        weights = self.v(torch.tanh(self.score(joint))).squeeze(-1).softmax(-1)
        return torch.einsum("bt,btd->bd", weights, memory), weights
"""
CONCAT = {
    "init": {"d_s": "d_s", "d_h": "d_h", "d_attn": "d_attn"},
    "inputs": {"word": "batch d_emb", "state": "batch d_s", "memory": "batch T_enc d_h"},
    "returns": [{"name": "c", "axes": "batch d_h"}, {"name": "w", "axes": "batch T_enc"}],
    "weights": {"output": "w"},
    "score": "concat",
}


def test_a_layer_of_the_wrong_size_is_blamed_on_its_construction():
    finding = the_finding(LAYERS.format(size="2 * d_h", keys="memory"), "Attend", **CONCAT)
    assert (finding.code, finding.location.line) == ("RG101", 6)
    assert "d_s+d_h" in finding.message
    assert "2*d_h" in finding.message


def test_a_layer_that_gets_another_content_is_blamed_on_the_content():
    keys = "word[:, None].expand(-1, n, -1)"
    finding = the_finding(LAYERS.format(size="d_s + d_h", keys=keys), "Attend", **CONCAT)
    assert (finding.code, finding.location.line) == ("RG101", 11)


def test_a_tensor_that_stays_unused_is_found_at_its_sibling_that_is_used_twice():
    finding = the_finding(
        """
        import torch
        import torch.nn as nn
        import torch.nn.functional as F
        class Attend(nn.Module):
            def __init__(self, width, heads):
                super().__init__()
                self.heads, self.packed = heads, nn.Linear(width, 3 * width)
            def split(self, t):
                return t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            def forward(self, x):
                queries, keys, values = self.packed(x).chunk(3, -1)
                q = self.split(queries)
                k = self.split(keys)
                v = self.split(keys)
                y = F.scaled_dot_product_attention(q, k, v)
                return y.transpose(1, 2).flatten(2)
        """,
        "Attend",
        **SELF,
    )
    assert finding.location.line == 14
    assert finding.message == "`keys` is used twice here and above, `values` never"


TWO = """
import torch
def attend(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    weights = torch.softmax(scores, dim=1)
    return weights @ v, weights
"""


def test_many_failing_relations_of_one_line_are_one_finding_that_counts_them():
    finding = the_finding(TWO, inputs=QKV, **BOTH)
    assert finding.evidence.relations_failed > 2
    assert finding.evidence.relations_run > finding.evidence.relations_failed
    assert "relations fail, all from this line" in finding.also
    assert finding.location.column == 15
    assert [s.name for s in finding.trace] == ["scores", "weights"]


def test_two_causes_are_two_findings():
    codes = [
        (f.code, f.location.line)
        for f in findings_of(
            """
            import torch
            def attend(q, k, v):
                scores = q @ k.mT
                weights = torch.softmax(scores, dim=1)
                return weights @ v, weights
            """,
            inputs=QKV,
            **BOTH,
        )
    ]
    assert ("RG301", 4) in codes


def fix(line, status="proven"):
    return Fix(status, (Edit(line, 1, line, 5, "x"),))


def test_a_proven_repair_says_where_the_finding_is():
    found = SimpleNamespace(fixes=(fix(5, "proven-if"), fix(3)), survivors=())
    finding = the_finding(TWO, found=found, inputs=QKV, **BOTH)
    assert finding.location.line == 3
    assert [f.status for f in finding.fixes] == ["proven", "proven-if"]


def test_of_several_repairs_that_depend_the_one_at_the_suspect_line_comes_first():
    found = SimpleNamespace(fixes=(fix(5, "proven-if"), fix(4, "proven-if")), survivors=())
    finding = the_finding(TWO, found=found, inputs=QKV, **BOTH)
    assert finding.location.line == 4
    assert [f.edits[0].line for f in finding.fixes] == [4, 5]


def test_what_stands_on_a_guess_is_a_note_that_says_which():
    case = case_of(TWO, inputs=QKV, **BOTH, guessed={"score": "guessed from `/`: --score"})
    verdict = fails("RG501", "the scale is missing", level="warning", depends_on=("score",))
    other = fails("RG301", "wrong axis")
    noted, *_ = causes(case, Results([verdict]))
    assert (noted.level, noted.depends_on) == ("note", "guessed from `/`: --score")
    levels = [f.level for f in causes(case, Results([verdict, other]))]
    assert levels[0] == "error"


def test_nothing_that_fails_is_nothing_to_say():
    case = case_of(TWO, inputs=QKV, **BOTH)
    assert causes(case, Results([])) == []


def test_an_unforeseen_rule_still_has_a_place():
    case = case_of(TWO, inputs=QKV, **BOTH)
    finding, *_ = causes(case, Results([fails("RG704", "something else")]))
    assert finding.location.line in range(1, 7)


GATED = """
import torch
def attend(q, k, v):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    {scores}
    return {weights} @ v
"""


def test_an_exponential_beside_the_scores_that_overflows_is_no_fault_of_the_softmax():
    beside = GATED.format(scores="scores = scores + k.sum(-1)[:, None].exp()", weights="{}")
    finding = the_finding(
        beside.format("scores.softmax(-1)"), **{**OUT, "score": None}, inputs=QKV
    )
    assert (finding.code, finding.level) == ("RG602", "warning")
    assert "exp overflows before scores are made" in finding.message
    bare = GATED.format(scores="w = scores.exp()", weights="(w / w.sum(-1, keepdim=True))")
    assert the_finding(bare, **OUT, inputs=QKV).level == "error"


UNREAD = """
import torch
def attend(x, memory):
    weights = (x @ x.mT / x.shape[-1] ** 0.5).softmax(-1)
    return weights @ x
"""


def test_a_memory_that_reaches_no_result_is_said_before_any_axis():
    finding = the_finding(
        UNREAD,
        inputs={"x": "batch T_dec d_h", "memory": "batch T_enc d_h"},
        returns=[{"name": "out", "axes": "batch T_dec d_h"}],
    )
    assert (finding.code, finding.message) == ("RG701", "argument `memory` changes no result")


COUNTED = """
import torch
def attend(x):
    gates = (x[:, 1:] @ x[:, 1:].mT).mean(-1).softmax(-1)
    weights = (x @ x.mT / x.shape[-1] ** 0.5).softmax(-1)
    return weights @ x * gates[:, :1, None].flip(0)
"""


def test_a_softmax_over_a_number_of_the_codes_own_is_not_blamed_for_what_else_fails():
    finding = the_finding(
        COUNTED,
        inputs={"x": "batch T d_h"},
        returns=[{"name": "out", "axes": "batch T d_h"}],
    )
    assert finding.code == "RG801"
    assert "softmax" not in finding.message
