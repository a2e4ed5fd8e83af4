"""The questions: that their answers are true, and that there is no end of them."""

import numpy as np
import pytest

import regard as rg
from regard.errors import InputError
from regard.learn.quiz import bank
from regard.learn.quiz.question import WHEN, Made, ask

LESSONS = {
    "bottleneck", "additive", "luong", "step-order", "masks", "query-key-value",
    "self-attention", "multi-head", "factored-kernel", "reading-alignments",
    "explanation-trap", "debugging-shapes",
}  # fmt: skip
PROVEN = [name for name, said in bank.fixed().items() if "proof" in said]


def test_every_lesson_has_questions_before_in_and_after_it():
    assert len(bank.names()) >= 40
    assert len(bank.names()) == len(set(bank.names()))
    found = {(each.lesson, each.when) for each in bank.questions()}
    assert found == {(lesson, when) for lesson in LESSONS for when in WHEN}


@pytest.mark.parametrize("name", PROVEN)
def test_the_answer_of_a_fixed_question_is_what_the_libraries_do(name):
    torch = pytest.importorskip("torch")
    assert bool(eval(bank.fixed()[name]["proof"], {"rg": rg, "np": np, "torch": torch})) is True


@pytest.mark.parametrize("name", bank.names())
def test_a_question_has_one_right_answer_among_others_and_a_reason(name):
    for seed in range(23):
        each = bank.question(name, seed)
        assert 2 <= len(each.options) <= 4
        assert len(set(each.options)) == len(each.options)
        assert each.text.strip().endswith(("?", "happens?"))
        assert len(each.because) > 20
        assert "nan" not in each.options[each.right]


@pytest.mark.parametrize("name", [name for name in bank.names() if bank.endless(name)])
def test_a_question_that_is_made_is_another_each_time_and_the_same_for_a_seed(name):
    made = [bank.question(name, seed) for seed in range(31)]
    assert made[7] == bank.question(name, 7)
    assert len({(each.text, each.options) for each in made}) > 5
    assert len({each.right for each in made}) > 1, "the right one is not always in one place"


def test_shapes_follow_their_sizes_by_hand():
    """The sizes are read from the text, the shape is what the lesson says."""
    import re

    wanted = {
        "shape-weights": ("batch", "T_dec", "T_enc"),
        "shape-context": ("batch", "T_dec", "d_h"),
        "shape-pairs": ("batch", "T_dec", "T_enc", "d_attn"),
        "shape-general": ("d_s", "d_h"),
    }
    for name, axes in wanted.items():
        for seed in range(11):
            each = bank.question(name, seed)
            sizes = {axis: int(size) for axis, size in re.findall(r"(\w+) = (\d+)", each.text)}
            assert each.options[each.right] == str(tuple(sizes[axis] for axis in axes))


def test_numbers_are_right_by_hand():
    """Each answer again, from the text alone and without regard."""
    import re
    from fractions import Fraction

    for seed in range(17):
        each = bank.question("number-dot", seed)
        s, h = (
            [int(x) for x in row.split(",")] for row in re.findall(r"\[([^\]]*)\]", each.text)
        )
        assert int(each.options[each.right]) == sum(a * b for a, b in zip(s, h, strict=True))

        each = bank.question("number-softmax", seed)
        ratio = int(re.search(r"ln (\d)", each.text)[1])
        first, second = 1 / (1 + ratio), ratio / (1 + ratio)
        assert each.options[each.right] == f"{first:.2f} and {second:.2f}"

        each = bank.question("number-aer", seed)
        sure, _, given = (
            set(re.findall(r"\d-\d", part)) for part in re.split("possible|gives", each.text)
        )
        possible = {*sure, "2-1"}
        rate = 1 - Fraction(len(given & sure) + len(given & possible), len(given) + len(sure))
        assert each.options[each.right] == f"{float(rate):.2f}"

        each = bank.question("number-memory", seed)
        batch, T, d = (
            int(re.search(rf"{axis}(\d+)", each.text)[1])
            for axis in ("batch ", "T_enc = ", "d_attn = ")
        )
        assert each.options[each.right] == f"{batch * T * T * d * 4 / 1e6:,.0f} MB"

        each = bank.question("mask-causal", seed)
        position = int(re.search(r"position (\d+)", each.text)[1])
        assert each.options[each.right] == str(position + 1)


def test_bahdanau_asks_with_the_state_before_and_luong_with_the_state_of_the_step():
    for seed in range(19):
        each = bank.question("number-step", seed)
        t = int(each.text.split("t = ")[1].split(".")[0])
        state = t - 1 if each.text.startswith("Bahdanau") else t
        assert each.options[each.right] == f"s_{state}"


def test_an_unknown_question_is_refused_and_one_without_other_answers_cannot_be():
    with pytest.raises(InputError, match="no question 'nothing'"):
        bank.question("nothing", 0)
    import random

    with pytest.raises(ValueError, match="needs a wrong answer"):
        ask("one", "masks", "check", Made("Is it?", "yes", ["yes"], "so"), random.Random(0))
