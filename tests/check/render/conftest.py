"""Reports written by hand: what a check may say, without any check."""

import pytest

from regard.check.finding import (
    Edit,
    Evidence,
    Finding,
    Fix,
    Location,
    Measurement,
    Proof,
    Report,
    Step,
    Tensor,
)

DECODER = '''\
import torch


def attend(query, keys, W, keep):
    """query (batch, T_dec, d_s), keys (batch, T_enc, d_h)"""

    # every query meets every key
    scores = query @ W @ keys.transpose(1, 2)
    scores = scores.masked_fill(~keep[:, None, :], float("-inf"))
    weights = torch.softmax(scores, dim=1)
    context = weights @ keys
    return context, weights
'''

MIX = """\
class Mixer:
    def mix(self, weights, keys):
        # Größe: 注意 <b>&amp;</b>
        return weights.transpose(1, 2) @ keys
"""

BIG = {"batch": 2, "T_dec": 3, "T_enc": 11, "d_s": 5, "d_h": 7}


@pytest.fixture
def decoder() -> Report:
    """A softmax over the queries, with a proven fix, and an all-masked row without any."""
    axis = Finding(
        code="RG301",
        name="softmax-axis",
        level="error",
        target="decoder.py:attend",
        message="`weights` sums to 1 over T_dec; each query's weights must sum to 1 over T_enc",
        location=Location("decoder.py", 10, 15, 10, 43),
        evidence=Evidence(
            relation="weights-sum-to-one",
            equation="sum over T_enc of weights[b, t, :] = 1",
            measured=(
                Measurement("sum over T_enc", "0.740 to 5.764", "must be 1"),
                Measurement("sum over T_dec", "1.000 to 1.000"),
                Measurement("weight on padding", "up to 0.333", "must be 0"),
            ),
            sizes=BIG,
            relations_failed=6,
            relations_run=12,
        ),
        tensor=Tensor("weights", ("batch", "T_dec", "T_enc"), (2, 3, 11)),
        trace=(
            Step(8, "scores", ("batch", "T_dec", "T_enc")),
            Step(9, "scores", ("batch", "T_dec", "T_enc")),
        ),
        hidden="every shape is right and nothing raises; at T_dec = 1 all weights are 1",
        fixes=(
            Fix(
                "proven",
                (Edit(10, 37, 10, 42, "dim=-1"),),
                proof=Proof(before=6, after=12, of=12, sizes=3),
            ),
        ),
        fingerprint="RG301:decoder.attend:weights",
    )
    row = Finding(
        code="RG205",
        name="all-masked-row",
        level="warning",
        target="decoder.py:attend",
        message="a query with no key to attend to spreads weight evenly over padding",
        location=Location("decoder.py", 9, 14, 9, 65),
        evidence=Evidence(
            relation="all-masked-row",
            equation="weights[b, t, :] = 0 where no key is visible",
            measured=(Measurement("weight on each padded key", "0.091", "must be 0"),),
            relations_failed=1,
            relations_run=12,
        ),
        fixes=(
            Fix(
                "sketch",
                (),
                "zeros, a sink key, or an error are all defensible; choose with --all-masked",
            ),
        ),
        fingerprint="RG205:decoder.attend:scores",
    )
    return Report(
        target="decoder.py:attend",
        findings=(axis, row),
        checked=(
            "runs",
            "weights-sum-to-one",
            "all-masked-row",
            "padding-does-not-matter",
            "batch-independent",
        ),
        not_checked=("gradients (--gradients)", "float16 (--dtype float16)"),
        signature="attend(query, keys, W, keep)",
        sizes=(BIG, {**BIG, "T_dec": 7}, {**BIG, "T_enc": 13}),
        source=DECODER,
        path="decoder.py",
        versions={"regard": "0.1", "python": "3.11.7", "torch": "2.13.0"},
        tensors=(
            Step(8, "scores", ("batch", "T_dec", "T_enc")),
            Step(9, "scores", ("batch", "T_dec", "T_enc")),
            Step(10, "weights", ("batch", "T_dec", "T_enc")),
            Step(11, "context", ("batch", "T_dec", "d_h")),
        ),
        weights_before=((0.5, 0.25, 0.75), (0.5, 0.75, 0.25)),
        weights_after=((0.2, 0.3, 0.5), (0.6, 0.3, 0.1)),
        relations=(
            {"name": "runs", "before": "holds", "after": "holds"},
            {"name": "weights-sum-to-one", "before": "fails", "after": "holds"},
        ),
        test="def test_each_querys_weights_sum_to_one():\n    ...\n",
    )


@pytest.fixture
def mixer() -> Report:
    """A crash under guesses, with two choices, and a suppressed note; awkward characters."""
    crash = Finding(
        code="RG101",
        name="axes-do-not-meet",
        level="error",
        target="src/mix er.py:Mixer.mix",
        message="`weights.transpose(1, 2) @ keys` contracts T_dec with T_enc",
        location=Location("src/mix er.py", 4, 16, 4, 39),
        evidence=Evidence(
            relation="runs",
            equation="the call returns",
            sizes={"batch": 2, "T_dec": 3, "T_enc": 11},
            relations_failed=1,
            relations_run=1,
            quote="Expected size for first two dimensions of batch2 tensor to be: [2, 3] "
            "but got: [2, 11].",
        ),
        tensor=Tensor(
            "weights.transpose(1, 2)",
            ("batch", "T_enc", "T_dec"),
            (2, 11, 3),
            ("batch", "T_dec", "T_enc"),
        ),
        trace=(
            Step(0, "weights", ("batch", "T_dec", "T_enc")),
            Step(4, "weights.transpose(1, 2)", ("batch", "T_enc", "T_dec")),
        ),
        hidden="with T_dec = T_enc this line runs and returns a wrong context",
        also="the merge after it",
        depends_on="weights are (batch, T_dec, T_enc)",
        fixes=(
            Fix(
                "proven-if",
                (Edit(4, 16, 4, 39, "weights"),),
                condition="weights are (batch, T_dec, T_enc)",
                proof=Proof(0, 9, 9, 2),
            ),
            Fix(
                "proven-if",
                (Edit(4, 42, 4, 46, "keys.flip(1)"), Edit(4, 16, 4, 39, "weights")),
                "Reads the keys from the end.",
                condition="keys run backwards",
                proof=Proof(0, 9, 9, 2, 1),
            ),
        ),
        fingerprint="RG101:mixer.Mixer.mix:weights.transpose(1, 2)",
    )
    note = Finding(
        code="RG504",
        name="other-score",
        level="note",
        target="src/mix er.py:Mixer.mix",
        message="weights are those of 100 % <dot>,\nnot of general: \x1b[31mred\u202e",
        location=Location("src/mix er.py", 2, 5, 4, 46),
        evidence=Evidence("declared-score", "weights = softmax(declared score)"),
        suppressed="the score of the old model, on purpose",
    )
    return Report(
        target="src/mix er.py:Mixer.mix",
        findings=(crash, note),
        checked=("runs", "declared-score"),
        not_checked=("every other relation: the code does not run",),
        assumptions=("weights are (batch, T_dec, T_enc) (--axes weights=...)",),
        signature="Mixer.mix(weights, keys)",
        sizes=({"batch": 2, "T_dec": 3, "T_enc": 11}, {"batch": 5, "T_dec": 7, "T_enc": 13}),
        source=MIX,
        path="src/mix er.py",
        seed=3,
    )


@pytest.fixture
def unloadable() -> Report:
    """A file that could not be imported."""
    finding = Finding(
        code="RG901",
        name="could-not-load",
        level="error",
        target="broken.py:attend",
        message="ModuleNotFoundError: No module named 'flash'",
        location=Location("broken.py", 1, 1, 1, 1),
        evidence=Evidence("could-check", "the code loads"),
        fingerprint="RG901:attend",
    )
    source = "import flash\n\n\ndef attend(query, keys): ...\n"
    return Report("broken.py:attend", (finding,), source=source, path="broken.py")


@pytest.fixture
def clean() -> Report:
    """Nothing to complain of."""
    return Report(
        target="good.py:attend",
        checked=("runs", "weights-sum-to-one"),
        signature="attend(query, keys)",
        sizes=({"batch": 2, "T_dec": 3, "T_enc": 11},),
        source="def attend(query, keys): ...\n",
        path="good.py",
    )


@pytest.fixture
def every(decoder, mixer, unloadable, clean) -> list[Report]:
    """All of them, as one run over four targets."""
    return [decoder, mixer, unloadable, clean]
