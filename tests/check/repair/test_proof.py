"""What a repair must keep, and when it is called proven."""

import numpy as np
import pytest

from regard.check.finding import Edit
from regard.check.relations.base import Results, Verdict
from regard.check.repair.proof import classes, fixes, keeps
from regard.check.repair.search import Survivor

SOURCE = """
class M:
    def forward(self, x, mask):
        return self.drop(x) + mask
"""


@pytest.mark.parametrize(
    "text",
    [
        SOURCE.replace("self.drop(x)", "x"),
        SOURCE.replace(" + mask", ""),
        SOURCE.replace("x, mask)", "x, keep)"),
        SOURCE.replace("x, mask)", "x, mask, more=1)"),
        SOURCE.replace("forward", "run"),
        SOURCE + "(",
    ],
)
def test_a_repair_deletes_no_feature_and_renames_nothing(text: str) -> None:
    assert not keeps(SOURCE, text)


def test_a_repair_may_move_dropout() -> None:
    assert keeps(SOURCE, SOURCE.replace("self.drop(x) + mask", "self.drop(x + mask)"))
    drop = "class M:\n    def forward(self, x):\n        return {}\n"
    before = drop.format("self.drop(x).softmax(-1)")
    assert keeps(before, drop.format("self.drop(x.softmax(-1))"))


TABLE = """
def table(length, width):
    position = arange(length)
    pe = zeros(length, width)
    pe[:, 0::2] = sin(position)
    return {}
"""


def test_a_repair_leaves_no_computed_name_unread_for_one_that_was_read() -> None:
    assert not keeps(TABLE.format("pe"), TABLE.format("position"))
    assert keeps(TABLE.format("pe"), TABLE.format("pe.T"))
    bias = "def f(n):\n    row = r(n)\n    d = row.T - row\n    return max({}, zeros_like(d))\n"
    assert not keeps(bias.format("d"), bias.format("row"))


def test_a_repair_may_take_up_a_name_that_was_left_aside() -> None:
    read = "def f(q, m):\n    k = p(m)\n    other = p(k)\n    return q @ {}\n"
    assert keeps(read.format("k"), read.format("other"))


def test_results_within_rounding_are_one_behaviour() -> None:
    a = np.ones(5)
    assert classes([[a], [a + 1e-7], [a + 1e-2], [a, a]]) == [0, 0, 1, 2]


def survivor(text: str, number: int, rank: float = 1.0) -> Survivor:
    results = Results([Verdict("sums", "holds"), Verdict("pads", "holds")])
    edit = Edit(1, 5, 1, 6, text)
    return Survivor(
        (edit,), f"a = {text}", "name", (1,), number, results, rank, ((4, 5, text),)
    )


FAILED = [Verdict("sums", "fails", "RG301")]


def test_survivors_that_behave_alike_are_one_proven_fix_the_plainest() -> None:
    found = [survivor("long_name", 0), survivor("b", 0), survivor("c", 0, rank=3.0)]
    (fix,) = fixes("a = x", found, FAILED, None)
    assert fix.status == "proven"
    assert fix.edits[0].text == "b"
    assert (fix.proof.before, fix.proof.after, fix.proof.of) == (1, 2, 2)


def test_survivors_that_differ_are_choices_each_with_its_condition() -> None:
    found = fixes("a = x", [survivor("b", 0), survivor("c", 1)], FAILED, None)
    assert [f.status for f in found] == ["proven-if", "proven-if"]
    assert "`c`" in found[0].condition
    assert "`b`" in found[1].condition


def test_no_survivor_is_no_fix() -> None:
    assert fixes("a = x", [], FAILED, None) == ()


@pytest.mark.parametrize(
    ("after", "allowed"),
    [
        ("torch.rand_like(z).clamp(1.0, 1 - 1e-6)", False),
        ("0 * torch.rand_like(z).clamp(1e-6, 1 - 1e-6)", False),
        ("torch.zeros_like(z).clamp(1e-6, 1 - 1e-6)", True),
        ("torch.rand_like(z).clamp(1e-6, 1 - 1e-6) if self.training else 0", True),
    ],
)
def test_a_draw_that_stays_is_not_made_a_constant(after, allowed):
    line = "def attend(self, z):\n    return z + {}\n"
    before = "torch.rand_like(z).clamp(1e-6, 1 - 1e-6)"
    assert keeps(line.format(before), line.format(after)) is allowed
